/**
 * Thresholds as operators set them: by level, each metric a rate, "not judged", or left to the level above.
 *
 * Nothing here reads or writes; the form's texts are parsed and the levels are put together.
 */
import { CodedError } from '#common/errors/index.ts';
import { type AttackDirection, attackDirections } from '#contracts/incidents.ts';
import {
  type Metric,
  metrics,
  type ThresholdSet,
  thresholdDefaults,
  thresholdMin,
} from '#contracts/sensor-api/detection.ts';

/** What one level sets; null: not judged; missing: left to the level above. */
export type ThresholdChoices = Readonly<
  Record<AttackDirection, Readonly<Partial<Record<Metric, number | null>>>>
>;

/** Texts of a form, by direction and metric. */
export type ThresholdTexts = Readonly<Record<AttackDirection, Readonly<Partial<Record<Metric, string>>>>>;

export const noChoices: ThresholdChoices = { inbound: {}, outbound: {} };

/** Of the levels that can set a threshold, the nearest to the address counts. */
export const levels = ['default', 'site', 'group', 'server', 'address'] as const;
export type Level = (typeof levels)[number];

/** A threshold, and the level that it comes from. */
export interface Resolved {
  value: number | null;
  level: Level;
  /** What the levels above would give. */
  inherited: number | null;
}
export type ResolvedSet = Readonly<Record<AttackDirection, Readonly<Record<Metric, Resolved>>>>;

/** No link carries more, so a threshold above it could never be reached. */
const packetsMax = 1e10;
const bitsMax = 1e14;

/** Metrics of bits; all others count packets or connections. */
export function isBitRate(metric: Metric): boolean {
  return metric.endsWith('bps');
}

/** Thresholds of the levels on top of one another, the nearest last. */
export function resolveLevels(
  defaults: ThresholdSet,
  chosen: readonly { level: Level; choices: ThresholdChoices }[],
): ResolvedSet {
  const of = (direction: AttackDirection) =>
    Object.fromEntries(
      metrics.map((metric) => {
        const first = defaults[direction][metric];
        let found: Resolved = { value: first, level: 'default', inherited: first };
        for (const { level, choices } of chosen) {
          const value = choices[direction][metric];
          if (value !== undefined) found = { value, level, inherited: found.value };
        }
        return [metric, found];
      }),
    ) as Record<Metric, Resolved>;
  return { inbound: of('inbound'), outbound: of('outbound') };
}

/** What addresses of a site have without a group or settings of their own. */
export function resolveSite(choices: ThresholdChoices): ResolvedSet {
  return resolveLevels(thresholdDefaults, [{ level: 'site', choices }]);
}

/** The values alone, as sensors receive them. */
export function valuesOf(resolved: ResolvedSet): ThresholdSet {
  const of = (direction: AttackDirection) =>
    Object.fromEntries(metrics.map((metric) => [metric, resolved[direction][metric].value])) as Record<
      Metric,
      number | null
    >;
  return { inbound: of('inbound'), outbound: of('outbound') };
}

/** Metrics as pages name them. */
export const metricNames: Readonly<Record<Metric, string>> = {
  pps: 'all packets',
  bps: 'all bits',
  syn_pps: 'TCP openings',
  udp_pps: 'UDP packets',
  udp_bps: 'UDP bits',
  icmp_pps: 'ICMP packets',
  fragment_pps: 'fragments',
  amplification_bps: 'amplification',
  amplification_spread_bps: 'amplification, over 20 sources',
  connections_per_second: 'empty connections',
};

/** These thresholds with choices on top. */
export function resolveChoices(thresholds: ThresholdSet, choices: ThresholdChoices): ThresholdSet {
  return valuesOf(resolveLevels(thresholds, [{ level: 'address', choices }]));
}

/** True when a level leaves everything to the level above. */
export function isEmpty(choices: ThresholdChoices): boolean {
  return attackDirections.every((direction) => Object.keys(choices[direction]).length === 0);
}

/** The choices in a form. Throws `protection.invalid` with every wrong field in `details.fields`. */
export function parseChoices(texts: ThresholdTexts): ThresholdChoices {
  const fields: Record<string, string> = {};
  const of = (direction: AttackDirection) => {
    const chosen: Partial<Record<Metric, number | null>> = {};
    for (const metric of metrics) {
      const read = parseThreshold(metric, texts[direction][metric] ?? '');
      if (typeof read === 'string') fields[`${direction}.${metric}`] = read;
      else if (read !== undefined) chosen[metric] = read;
    }
    return chosen;
  };
  const choices = { inbound: of('inbound'), outbound: of('outbound') };
  const [first] = Object.entries(fields);
  if (first) {
    const count = Object.keys(fields).length;
    const more = count > 1 ? ` ${count - 1} more fields are wrong.` : '';
    throw new CodedError('protection.invalid', `${first[0]}: ${first[1]}${more}`, { fields });
  }
  return choices;
}

const factors: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };

/** A rate, null for "not judged", undefined for a blank field; a text says what is wrong. */
function parseThreshold(metric: Metric, typed: string): number | null | undefined | string {
  const text = typed.trim().toLowerCase();
  if (text === '') return undefined;
  if (text === 'off' || text === 'not judged') return null;
  const value = parseRate(text);
  if (value === null)
    return 'Write a number such as 20000, 20k or 1.5M, or off for "not judged". Leave it blank for the level above.';
  const most = isBitRate(metric) ? bitsMax : packetsMax;
  if (value > most)
    return `No traffic reaches more than ${isBitRate(metric) ? '100T bits' : '10G packets'} a second. Write off if it must not be judged.`;
  if (value < thresholdMin)
    return 'Every packet reaches a threshold below 1. Write at least 1, or off if it must not be judged.';
  return value;
}

/** `20,000`, `20k` or `1.5M` as a number; null for any other text. */
export function parseRate(typed: string): number | null {
  const text = typed.trim().toLowerCase().replace(/[,_ ]/g, '');
  const found = /^(\d{1,16}(?:\.\d{1,6})?)([kmgt]?)$/.exec(text);
  return found ? Number(found[1]) * factors[found[2]!]! : null;
}

/** Choices as a flat object for the audit trail: `inbound syn_pps`. */
export function flatChoices(choices: ThresholdChoices): Record<string, number | 'not judged'> {
  return Object.fromEntries(
    attackDirections.flatMap((direction) =>
      Object.entries(choices[direction]).map(([metric, value]) => [
        `${direction} ${metric}`,
        value ?? 'not judged',
      ]),
    ),
  );
}

/** What a reader of these thresholds may not expect, as sentences. */
export function describeOddities(thresholds: ThresholdSet): string[] {
  const found: string[] = [];
  for (const direction of attackDirections) {
    const values = thresholds[direction];
    if (metrics.every((metric) => values[metric] === null)) {
      found.push(`Nothing ${direction} is judged: no attack in this direction is found.`);
      continue;
    }
    for (const [part, whole] of partsOf) {
      const [partMax, wholeMax] = [values[part], values[whole]];
      if (partMax === null || wholeMax === null || partMax <= wholeMax) continue;
      const side = direction === 'inbound' ? 'Inbound' : 'Outbound';
      found.push(
        `${side}: the threshold of ${metricNames[part]} is above that of ${metricNames[whole]}, which counts the same traffic and is always reached first.`,
      );
    }
  }
  return found;
}

const partsOf: readonly (readonly [Metric, Metric])[] = [
  ['syn_pps', 'pps'],
  ['udp_pps', 'pps'],
  ['icmp_pps', 'pps'],
  ['fragment_pps', 'pps'],
  ['udp_bps', 'bps'],
  ['amplification_bps', 'bps'],
  ['amplification_spread_bps', 'amplification_bps'],
];
