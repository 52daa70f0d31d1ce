/** Minutes that were not, or not wholly, collected. A gap that is lost is told again: it stands for itself. */
import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
import { namesCommon, type RecordKind, type Shift } from '#sensor/spool/index.ts';

export const gapRecords: RecordKind<'gaps'> = {
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
