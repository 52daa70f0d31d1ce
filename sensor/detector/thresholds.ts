/**
 * Thresholds of attack detection: rates that one address may reach, by direction.
 *
 * A metric without a threshold has the value infinity and is not judged.
 */
import { type AttackDirection, attackDirections } from '#contracts/incidents.ts';
import {
  type Metric,
  metrics,
  type ThresholdValues,
  thresholdDefaults,
  thresholdMax,
  thresholdMin,
} from '#contracts/sensor-api/detection.ts';

export type DirectionName = AttackDirection;
export const directionNames = attackDirections;

export type DirectionThresholds = Readonly<Record<Metric, number>>;
export type Thresholds = Readonly<Record<DirectionName, DirectionThresholds>>;

const none = Number.POSITIVE_INFINITY;

/** Rates that are compared; a metric that is not judged has none to reach. */
const judged = (values: ThresholdValues) =>
  Object.fromEntries(metrics.map((metric) => [metric, values[metric] ?? none])) as Record<Metric, number>;

/** The defaults of the contract. */
export const defaultThresholds: Thresholds = {
  inbound: judged(thresholdDefaults.inbound),
  outbound: judged(thresholdDefaults.outbound),
};

/** These thresholds, and the defaults where none are given; outbound amplification as inbound. */
export function withDefaults(
  given: Partial<Record<DirectionName, Partial<DirectionThresholds>>>,
): Thresholds {
  const inbound = { ...defaultThresholds.inbound, ...given.inbound };
  const { amplification_bps, amplification_spread_bps } = inbound;
  const reflected = { amplification_bps, amplification_spread_bps };
  return { inbound, outbound: { ...defaultThresholds.outbound, ...reflected, ...given.outbound } };
}

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
  const of = (direction: DirectionName) => parseDirection(groups[direction], direction);
  return withDefaults({ inbound: of('inbound'), outbound: of('outbound') });
}

function parseDirection(value: unknown, direction: DirectionName): Partial<Record<Metric, number>> {
  if (value === undefined) return {};
  const found: Partial<Record<Metric, number>> = {};
  for (const [name, one] of Object.entries(requireObject(value, `"${direction}"`, metrics))) {
    const isRate = typeof one === 'number' && one >= thresholdMin && one <= thresholdMax;
    if (one !== null && !isRate)
      throw new ThresholdError(
        `"${direction}.${name}" must be a number of at least ${thresholdMin}, or null for "not judged".`,
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
