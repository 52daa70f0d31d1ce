/**
 * Thresholds that fit the traffic that an address has had ("learn"). Pure; a person reviews them before they apply.
 */
import type { AttackDirection } from '#contracts/incidents.ts';
import { type Metric, metrics, type ThresholdSet } from '#contracts/sensor-api/detection.ts';

/** What the 99.9th percentile is multiplied by. */
export const learnFactor = 2;
/** Minutes with traffic from which a percentile says anything: one day. */
export const learnMinutesMin = 1440;

/** The 99.9th percentile of what may decide, over the minutes with traffic; null: none. */
export type Percentiles = Readonly<Record<AttackDirection, Readonly<Record<Metric, number | null>>>>;

export interface Proposal {
  metric: Metric;
  direction: AttackDirection;
  percentile: number;
  now: number | null;
  proposed: number;
}

/**
 * A proposal for each judged metric with traffic that differs by more than a tenth. Thresholds that are not judged stay so.
 * None is lower than a tenth of the default: an address that is quiet now must not be attacked by its first visitors.
 */
export function propose(percentiles: Percentiles, now: ThresholdSet, defaults: ThresholdSet): Proposal[] {
  return (['inbound', 'outbound'] as const).flatMap((direction) =>
    metrics.flatMap((metric): Proposal[] => {
      const percentile = percentiles[direction][metric];
      const current = now[direction][metric];
      // Without traffic there is nothing to learn from.
      if (percentile === null || percentile === 0 || current === null) return [];
      const least = (defaults[direction][metric] ?? current) / 10;
      const proposed = twoDigits(Math.max(percentile * learnFactor, least));
      if (Math.abs(proposed - current) <= current / 10) return [];
      return [{ metric, direction, percentile, now: current, proposed }];
    }),
  );
}

/** Rounded up to two digits: 12,345 becomes 13,000. */
function twoDigits(value: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return Math.ceil(value / step) * step;
}
