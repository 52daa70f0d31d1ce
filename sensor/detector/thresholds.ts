/**
 * Thresholds of attack detection: rates that one address may reach, by direction.
 *
 * A metric without a threshold has the value infinity and is not judged.
 */

/** Names as in threshold files. */
export const metrics = [
  'pps',
  'bps',
  'syn_pps',
  'udp_pps',
  'udp_bps',
  'icmp_pps',
  'fragment_pps',
  'amplification_bps',
  'amplification_spread_bps',
  'connections_per_second',
] as const;

export type Metric = (typeof metrics)[number];
export type DirectionName = 'inbound' | 'outbound';
export const directionNames = ['inbound', 'outbound'] as const;

export type DirectionThresholds = Readonly<Record<Metric, number>>;
export type Thresholds = Readonly<Record<DirectionName, DirectionThresholds>>;

const none = Number.POSITIVE_INFINITY;

/** Defaults for one address. Outbound, other attacks are seen by their packets and bytes. */
export const defaultThresholds: Thresholds = {
  inbound: {
    pps: 50_000,
    bps: 900e6,
    syn_pps: 10_000,
    udp_pps: 30_000,
    udp_bps: 400e6,
    icmp_pps: 5000,
    fragment_pps: 5000,
    amplification_bps: 150e6,
    amplification_spread_bps: 100e6,
    connections_per_second: 10_000,
  },
  outbound: {
    pps: 80_000,
    bps: 900e6,
    syn_pps: 3000,
    udp_pps: none,
    udp_bps: none,
    icmp_pps: none,
    fragment_pps: none,
    amplification_bps: none,
    amplification_spread_bps: none,
    connections_per_second: none,
  },
};

/** Sources above which amplification is judged by `amplification_spread_bps`. */
export const spreadSources = 20;

/** A prefix is attacked as a whole from twice the threshold of one address on. */
const prefixFactor = 2;

/** The thresholds of a prefix whose addresses have these. */
export function prefixThresholds(thresholds: Thresholds): Thresholds {
  const of = (one: DirectionThresholds) =>
    Object.fromEntries(metrics.map((metric) => [metric, one[metric] * prefixFactor])) as Record<
      Metric,
      number
    >;
  return { inbound: of(thresholds.inbound), outbound: of(thresholds.outbound) };
}

/** Problem of a threshold file, as a sentence that says what to write. */
export class ThresholdError extends Error {}

const example = '{"inbound": {"pps": 20000, "udp_bps": null}, "outbound": {"syn_pps": 1000}}';

/** Reads a threshold file: JSON, in which missing values are the defaults and null is "not judged". */
export function parseThresholds(text: string): Thresholds {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ThresholdError(`it is not JSON. Write for example ${example}`);
  }
  const groups = requireObject(value, 'The file', directionNames);
  const of = (direction: DirectionName): DirectionThresholds => ({
    ...defaultThresholds[direction],
    ...parseDirection(groups[direction], direction),
  });
  return { inbound: of('inbound'), outbound: of('outbound') };
}

function parseDirection(value: unknown, direction: DirectionName): Partial<Record<Metric, number>> {
  if (value === undefined) return {};
  const found: Partial<Record<Metric, number>> = {};
  for (const [name, one] of Object.entries(requireObject(value, `"${direction}"`, metrics))) {
    const isRate = typeof one === 'number' && one >= 1 && one <= 1e15;
    if (one !== null && !isRate)
      throw new ThresholdError(
        `"${direction}.${name}" must be a number of at least 1, or null for "not judged".`,
      );
    found[name as Metric] = one === null ? none : one;
  }
  return found;
}

function requireObject(value: unknown, what: string, names: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ThresholdError(`${what} must be a JSON object. Write for example ${example}`);
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new ThresholdError(`${what} has no threshold "${unknown}". Known: ${names.join(', ')}.`);
  return value as Record<string, unknown>;
}
