/** The curve of an incident, with the threshold that it exceeded. */
import { type CurvePoint, type Incident, isBitMetric } from '#monitor/incidents/index.ts';
import type { ChartData, ChartUnit } from '#service-kit/pages/index.ts';

/** Points of one chart; beyond, a point is the largest second of several. */
const pointsMax = 900;
const steps = [1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 21_600, 86_400];

/** The unit of the threshold; packets where it is not known. */
export function curveUnit({ measured: { threshold } }: Pick<Incident, 'measured'>): ChartUnit {
  return threshold !== null && isBitMetric(threshold.metric) ? 'bit/s' : 'packets/s';
}

export function curveStepMs({ startedAtMs, lastObservedAtMs }: Incident): number {
  const seconds = (lastObservedAtMs - startedAtMs) / 1000;
  return (steps.find((step) => seconds / step <= pointsMax) ?? steps.at(-1)!) * 1000;
}

export function curveData(incident: Incident, curve: readonly CurvePoint[]): ChartData {
  const { threshold } = incident.measured;
  const isBits = curveUnit(incident) === 'bit/s';
  const values = curve.map((point) => (isBits ? point.bps : point.pps));
  return {
    timesMs: curve.map(({ atMs }) => atMs),
    stepMs: curveStepMs(incident),
    series: [
      { label: 'Attack', role: 'attack', values },
      ...(threshold
        ? [{ label: 'Threshold', isExpected: true, values: curve.map(() => threshold.value) }]
        : []),
    ],
  };
}
