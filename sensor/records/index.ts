/**
 * The kinds of records that a sensor sends: how urgent each is, what its loss means, and how it moves to the right clock.
 *
 * The spool takes the list and knows no kind by itself. `docs/adding-a-record.md` says how to add one.
 */

import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { namesCommon, type RecordKind, type Shift } from '#sensor/spool/index.ts';

/** What captures counted. A minute that is lost is a gap of every capture. */
const minuteRecords: RecordKind<'minutes'> = {
  name: 'minutes',
  priority: 'bulk',
  goesAlone: true,
  count: ({ minutes }) => minutes.length,
  lostAs({ minutes }) {
    const distinct = [...new Set(minutes.map(({ minute }) => minute))].sort((a, b) => a - b);
    return distinct.map(
      (minute): TelemetryGap => ({ fromMinute: minute, toMinute: minute, capture: '', reason: 'refused' }),
    );
  },
  restamp: ({ minutes }, { seconds }) => ({ minutes: minutes.map((one) => moved(one, seconds)) }),
};

function moved(one: TelemetryMinute, seconds: number): TelemetryMinute {
  const sent = (ms: number) => (ms === 0 ? 0 : ms + seconds * 1000);
  return {
    ...one,
    minute: one.minute + seconds,
    usage: one.usage.map((row) => ({
      ...row,
      clientLastSentMs: sent(row.clientLastSentMs),
      serverLastSentMs: sent(row.serverLastSentMs),
    })),
  };
}

/** Minutes that were not, or not wholly, collected. A gap that is lost is told again: it stands for itself. */
const gapRecords: RecordKind<'gaps'> = {
  name: 'gaps',
  priority: 'bulk',
  goesAlone: true,
  count: ({ gaps }) => gaps.length,
  lostAs: ({ gaps }) => gaps,
  restamp(content, shift) {
    // What it has in common with others is settled by its new times.
    const isCommon = (gap: TelemetryGap) => content.minutes.some(({ minute }) => namesCommon(gap, minute));
    const gaps = content.gaps.filter((gap) => !isCommon(gap)).flatMap((gap) => shiftGap(gap, shift));
    if (!shift.isUneven) return { gaps };
    const uneven = content.minutes.map(({ minute, capture }): TelemetryGap => {
      const at = minute + shift.seconds;
      return { fromMinute: at, toMinute: at, capture, reason: 'clock_step' };
    });
    return { gaps: [...gaps, ...uneven] };
  },
};

/** An end that an earlier clock told stays where it is; a gap that is empty by the right clock goes. */
function shiftGap(gap: TelemetryGap, shift: Shift): TelemetryGap[] {
  const moved = (minute: number) => (minute >= shift.since - 60 ? minute + shift.seconds : minute);
  const toMinute = Math.min(moved(gap.toMinute), shift.lastMinute);
  const fromMinute = moved(gap.fromMinute);
  if (fromMinute > toMinute) return [];
  // Older sensors told what a clock jumped over as one step. Nothing was heard of it, and what was takes its part back.
  const isJump = shift.isUnknown && gap.reason === 'clock_step' && fromMinute < toMinute;
  return [{ ...gap, fromMinute, toMinute, reason: isJump ? 'sensor_down' : gap.reason }];
}

/** What the host's network consists of. It is told again with the next minute, so its loss means nothing. */
export const inventoryRecords: RecordKind<'inventory'> = {
  name: 'inventory',
  priority: 'bulk',
  goesAlone: false,
  count: ({ inventory }) => (inventory ? 1 : 0),
  lostAs: () => [],
  restamp({ inventory }, { seconds }, nowMs) {
    if (!inventory) return {};
    return {
      inventory: { ...inventory, observedAtMs: Math.min(inventory.observedAtMs + seconds * 1000, nowMs) },
    };
  },
};

/** Results of probes. The monitor counts each once. A minute without results is unknown, so their loss needs no gap. */
export const probeRecords: RecordKind<'probes'> = {
  name: 'probes',
  priority: 'bulk',
  goesAlone: true,
  count: ({ probes }) => probes?.length ?? 0,
  lostAs: () => [],
  restamp: ({ probes }, { seconds }) =>
    probes ? { probes: probes.map((one) => ({ ...one, minute: one.minute + seconds })) } : {},
};

/** What the detector sees of incidents. The next revision stands for one that is lost, so its loss needs no gap. */
const incidentRecords: RecordKind<'incidents'> = {
  name: 'incidents',
  priority: 'urgent',
  goesAlone: true,
  count: ({ incidents }) => incidents?.length ?? 0,
  lostAs: () => [],
  restamp: ({ incidents }, { seconds }) =>
    incidents ? { incidents: incidents.map((one) => movedIncident(one, seconds * 1000)) } : {},
};

function movedIncident(one: IncidentObservation, ms: number): IncidentObservation {
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

/** What the detector protects, since when. Minutes without their epoch are unknown, so its loss needs no gap. */
export const epochRecords: RecordKind<'epochs'> = {
  name: 'epochs',
  priority: 'bulk',
  goesAlone: false,
  count: ({ epochs }) => epochs?.length ?? 0,
  lostAs: () => [],
  restamp: ({ epochs }, { seconds }) =>
    epochs ? { epochs: epochs.map((one) => ({ ...one, sinceMs: one.sinceMs + seconds * 1000 })) } : {},
};

export const recordKinds: readonly RecordKind[] = [
  minuteRecords,
  gapRecords,
  inventoryRecords,
  probeRecords,
  incidentRecords,
  epochRecords,
];
