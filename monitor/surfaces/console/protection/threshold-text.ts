/** Thresholds in words: what a metric counts, its rate with its unit, and the level that a value comes from. */
import { attackDirections } from '#contracts/incidents.ts';
import { type Metric, metrics } from '#contracts/sensor-api/detection.ts';
import {
  isBitRate,
  type Level,
  parseRate,
  type ThresholdChoices,
  type ThresholdTexts,
} from '#monitor/protection/index.ts';
import { formatBitRate, formatCount } from '#service-kit/pages/index.ts';

export const metricHints: Readonly<Record<Metric, string>> = {
  pps: 'packets a second of any kind',
  bps: 'bits a second of any kind',
  syn_pps: 'openings without a completed handshake',
  udp_pps: 'UDP datagrams',
  udp_bps: 'bits in UDP datagrams',
  icmp_pps: 'ICMP and ICMPv6',
  fragment_pps: 'IP fragments',
  amplification_bps: 'UDP from ports that are used for amplification',
  amplification_spread_bps: 'the same, while more than 20 sources send',
  connections_per_second: 'completed connections that carry almost nothing',
};

/** `50,000 packets/s`, `900 Mbit/s`, `not judged`. */
export function rateText(metric: Metric, value: number | null): string {
  if (value === null) return 'not judged';
  if (!isBitRate(metric)) return `${formatCount(value)} ${unitOf(metric)}`;
  if (value >= 1e9 && value % 1e8 === 0) return `${formatCount(value / 1e9)} Gbit/s`;
  if (value % 1e6 === 0) return `${formatCount(value / 1e6)} Mbit/s`;
  return value % 1 === 0 ? `${formatCount(value)} bit/s` : formatBitRate(value);
}

const levelNames: Readonly<Record<Level, string>> = {
  default: 'default',
  site: 'this site',
  group: 'group',
  server: 'server',
  address: 'address',
};

export function levelText(level: Level): string {
  return levelNames[level];
}

const units = [
  ['T', 1e12],
  ['G', 1e9],
  ['M', 1e6],
  ['k', 1e3],
] as const;

/** A rate as a form takes it: `900M`, `off`. */
export function typedText(value: number | null): string {
  if (value === null) return 'off';
  const unit = units.find(([, factor]) => value >= factor && Number.isInteger((value / factor) * 1000));
  return unit ? `${value / unit[1]}${unit[0]}` : String(value);
}

/** What a level sets, as the fields of its form. */
export function textsOf(choices: ThresholdChoices): ThresholdTexts {
  const of = (direction: (typeof attackDirections)[number]) =>
    Object.fromEntries(
      Object.entries(choices[direction]).map(([metric, value]) => [metric, typedText(value)]),
    );
  return { inbound: of('inbound'), outbound: of('outbound') };
}

/** Names of the fields of a form: `inbound.pps`. */
export const thresholdFields = attackDirections.flatMap((direction) =>
  metrics.map((metric) => `${direction}.${metric}`),
);

/** What a threshold of this metric counts. */
export function unitOf(metric: Metric): string {
  if (metric === 'connections_per_second') return 'connections/s';
  return isBitRate(metric) ? 'bit/s' : 'packets/s';
}

/** Name of the field that holds what a blank field was shown to stand for. */
export const shownName = (field: string) => `shown.${field}`;

/** The fields of a posted form; with `multiply` each rate times that, typed or shown. */
export function readTexts(body: Readonly<Record<string, unknown>>): ThresholdTexts {
  const factor = body.multiply ? Number(body.multiply) : 1;
  const multiplied = (field: string, typed: string) => {
    const shown = body[shownName(field)];
    const rate = parseRate(typed.trim() === '' && typeof shown === 'string' ? shown : typed);
    return rate === null ? typed : typedText(Math.max(1, Math.round(rate * factor)));
  };
  const of = (direction: (typeof attackDirections)[number]) =>
    Object.fromEntries(
      metrics.map((metric) => {
        const field = `${direction}.${metric}`;
        const text = body[field];
        const typed = typeof text === 'string' ? text : '';
        return [metric, factor === 1 ? typed : multiplied(field, typed)];
      }),
    );
  return { inbound: of('inbound'), outbound: of('outbound') };
}
