/** Appends one commit of the collector. */
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { appendedState } from './appended-state.ts';
import { hasMinute } from './minute-ranges.ts';
import type { SpoolQueue } from './queue.ts';
import { isWorthSending } from './record-kind.ts';
import type { SpoolState } from './spool-state.ts';
import type { CommitExtras } from './spooled-upload.ts';
import { uploadRows } from './upload-row.ts';

/** Appends the minutes, gaps and other records that are not in the spool yet. Throws `spool.full` without room. */
export function appendCommit(
  queue: SpoolQueue,
  minutes: readonly TelemetryMinute[],
  gaps: readonly TelemetryGap[],
  extras: CommitExtras = {},
): void {
  const { deps, state } = queue;
  const { fresh, isKnown } = findFresh(state, minutes, extras.commit ?? null);
  const others = { minutes: [], gaps: [], ...extras.records };
  if (isKnown && !isWorthSending(deps.kinds, others)) return;
  const freshGaps = isKnown ? [] : [...gaps];
  const first = {
    position: queue.lastPosition + 1,
    spoolId: state.spoolId,
    sequence: state.nextSequence,
    madeAtMs: deps.clock.nowMs(),
  };
  const rows = uploadRows(deps, first, { ...others, minutes: fresh, gaps: freshGaps });
  const payloadBytes = rows.all.reduce((sum, row) => sum + row.payload.length, 0);
  if (fresh.length > 0) deps.room.require(queue.store, queue.pending.bytes, payloadBytes);
  queue.commitRows(appendedState(state, rows, fresh, freshGaps, extras), rows.all);
  if (fresh.length > 0) deps.room.note(payloadBytes);
}

/**
 * The minutes that the spool has not taken, and whether it has taken the whole commit: one whose sync failed may have
 * happened all the same, and then the caller comes with it once more.
 */
function findFresh(
  state: SpoolState,
  minutes: readonly TelemetryMinute[],
  name: string | null,
): { fresh: TelemetryMinute[]; isKnown: boolean } {
  if (name !== null) {
    const isKnown = name === state.lastCommit;
    return { fresh: isKnown ? [] : [...minutes], isKnown };
  }
  const fresh = minutes.filter(({ minute }) => !hasMinute(state.covered, minute));
  return { fresh, isKnown: minutes.length > 0 && fresh.length === 0 };
}
