/** The curve of an incident, with the threshold that it exceeded, what happened to it, and times that no sensor observed. */
import {
  type CurvePoint,
  type Incident,
  isBitMetric,
  type StoredTransition,
  type TransitionKind,
} from '#monitor/incidents/index.ts';
import type { ChartData, ChartFlag, ChartReason, ChartUnit, Tone } from '#service-kit/pages/index.ts';
import type { TimelineEntry } from '../hand-off/timeline.ts';
import { incidentHref } from '../parts/incident-text.ts';

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

/** Where the timeline stands on the page of the incident. */
export const timelineId = 'what-happened';

const flagTexts: Readonly<Record<TransitionKind, [text: string, tone: Tone]>> = {
  detected: ['Detected', 'bad'],
  joined: ['Another interface sees it', 'info'],
  class_changed: ['Called another class', 'info'],
  stale: ['No recent data', 'warn'],
  observed_again: ['Observed again', 'info'],
  recovered: ['Recovered', 'good'],
  reopened: ['Began again', 'bad'],
  merged: ['Another incident is a part of it', 'info'],
  withdrawn: ['Withdrawn', 'info'],
};

/** What happened to an incident. */
export interface IncidentHistory {
  transitions: readonly StoredTransition[];
  handOff: readonly TimelineEntry[];
}

export function curveData(
  incident: Incident,
  curve: readonly CurvePoint[],
  history: IncidentHistory,
): ChartData {
  const { threshold } = incident.measured;
  const isBits = curveUnit(incident) === 'bit/s';
  const values = curve.map((point) => (isBits ? point.bps : point.pps));
  return {
    timesMs: curve.map(({ atMs }) => atMs),
    stepMs: curveStepMs(incident),
    flags: flagsOf(incident, history),
    reasons: unobserved(incident, curve),
    series: [
      { label: 'Attack', role: 'attack', values },
      ...(threshold
        ? [{ label: 'Threshold', isExpected: true, values: curve.map(() => threshold.value) }]
        : []),
    ],
  };
}

/** In order of time. */
function flagsOf(incident: Incident, { transitions, handOff }: IncidentHistory): ChartFlag[] {
  const href = `${incidentHref(incident)}#${timelineId}`;
  const flags = [
    ...transitions.map(({ kind, atMs }): ChartFlag => {
      const [text, tone] = flagTexts[kind];
      return { timeMs: atMs, text, tone, href };
    }),
    ...handOff.map(({ atMs, text }): ChartFlag => ({ timeMs: atMs, text, tone: 'info', href })),
  ];
  return flags.sort((a, b) => a.timeMs - b.timeMs);
}

/** Between the first and the last point. */
function unobserved(incident: Incident, curve: readonly CurvePoint[]): ChartReason[] {
  const stepMs = curveStepMs(incident);
  return curve.slice(1).flatMap(({ atMs }, i): ChartReason[] => {
    const fromMs = curve[i]!.atMs + stepMs;
    return fromMs < atMs ? [{ fromMs, toMs: atMs, text: 'not observed' }] : [];
  });
}
