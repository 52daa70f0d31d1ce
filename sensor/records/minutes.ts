/** What captures counted. A minute that is lost is a gap of every capture. */
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import type { RecordKind } from '#sensor/spool/index.ts';

export const minuteRecords: RecordKind<'minutes'> = {
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
