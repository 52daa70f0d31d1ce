/** What the detector sees of incidents. The next revision stands for one that is lost, so its loss needs no gap. */
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import type { RecordKind } from '#sensor/spool/index.ts';

export const incidentRecords: RecordKind<'incidents'> = {
  name: 'incidents',
  priority: 'urgent',
  goesAlone: true,
  count: ({ incidents }) => incidents?.length ?? 0,
  lostAs: () => [],
  restamp: ({ incidents }, { seconds }) =>
    incidents ? { incidents: incidents.map((one) => moved(one, seconds * 1000)) } : {},
};

function moved(one: IncidentObservation, ms: number): IncidentObservation {
  return {
    ...one,
    startedAtMs: one.startedAtMs + ms,
    detectedAtMs: one.detectedAtMs + ms,
    lastObservedAtMs: one.lastObservedAtMs + ms,
    vectors: one.vectors.map(({ details, ...vector }) => ({
      ...vector,
      ...(details && {
        details: {
          ...details,
          startedAtMs: details.startedAtMs + ms,
          lastObservedAtMs: details.lastObservedAtMs + ms,
        },
      }),
    })),
    recoveredAtMs: one.recoveredAtMs === null ? null : one.recoveredAtMs + ms,
    peak: { ...one.peak, bpsAtMs: one.peak.bpsAtMs + ms, ppsAtMs: one.peak.ppsAtMs + ms },
    seconds: one.seconds.map((second) => ({ ...second, atMs: second.atMs + ms })),
  };
}
