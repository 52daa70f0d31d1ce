import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { addRange } from './minute-ranges.ts';
import type { SpoolState } from './spool-state.ts';
import type { CommitExtras } from './spooled-upload.ts';
import { addRun, committedBy, dropRunsBefore } from './stamp-runs.ts';
import type { CommitRows } from './upload-row.ts';

/** The state after these rows were appended, with these minutes and gaps in them. */
export function appendedState(
  state: SpoolState,
  rows: CommitRows,
  minutes: readonly TelemetryMinute[],
  gaps: readonly TelemetryGap[],
  extras: CommitExtras = {},
): SpoolState {
  const { commit, stampedBy: by } = extras;
  let covered = state.covered;
  for (const { minute } of minutes) covered = addRange(covered, minute, minute);
  for (const { fromMinute, toMinute } of gaps) covered = addRange(covered, fromMinute, toMinute);
  const throughMinute = Math.max(...minutes.map(({ minute }) => minute), ...gaps.map((gap) => gap.toMinute));
  const parts = rows.parts.map(({ position }) => position);
  return {
    ...state,
    nextSequence: state.nextSequence + rows.all.length,
    covered,
    stamps: addRun(state.stamps ?? [], rows.all[0]!.position, by),
    ...(parts.length > 0 ? { parts: [...(state.parts ?? []), ...parts] } : {}),
    ...(commit === undefined ? {} : { lastCommit: commit }),
    ...(by && Number.isFinite(throughMinute)
      ? { lastStampedBy: committedBy(state.lastStampedBy, by, throughMinute) }
      : {}),
  };
}

/** The state after the upload at this position left; `isFirst`: no other one waits before it. */
export function deliveredState(state: SpoolState, position: number, isFirst: boolean): SpoolState {
  const { stamps = [], parts } = state;
  return {
    ...state,
    ...(isFirst ? { stamps: dropRunsBefore(stamps, position + 1) } : {}),
    ...(parts ? { parts: parts.filter((one) => (isFirst ? one > position : one !== position)) } : {}),
  };
}
