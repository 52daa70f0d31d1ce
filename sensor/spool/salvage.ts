/**
 * Saves what is intact in a damaged spool into a new file, and says exactly which minutes are lost.
 *
 * Uploads keep their identity: one of them may already lie at the monitor, and under a new number it would count
 * twice. The new file's own numbers start at 1 under a new UUID.
 */
import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Clock } from '#common/clock/index.ts';
import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
import { addRange, type MinuteRange, subtractRanges } from './minute-ranges.ts';
import { type RecordValue, readPageRecords } from './page-records.ts';
import type { RecordKind } from './record-kind.ts';
import { nextSpoolFile, readStateCopy, type SpoolFile, takeOver } from './spool-file.ts';
import { fromStored, type SpoolState, spoolFormat } from './spool-state.ts';
import { openSpoolStore, type UploadRow } from './store.ts';
import { coversOf, gapRow, payloadIsIntact, renumberedRow } from './upload-row.ts';

/** A receipt for minutes that lie further ahead is a clock's that was wrong: it says nothing about what was delivered. */
const wrongFromSeconds = 86_400;

export interface SalvageResult {
  intactUploads: number;
  lost: TelemetryGap[];
}

interface WhatIsLeft {
  state: SpoolState | null;
  rows: UploadRow[];
}

interface SalvageDeps {
  directory: string;
  file: SpoolFile;
  bytesMax: number;
  clock: Clock;
  sensorVersion: string;
  kinds: readonly RecordKind[];
}

/** Builds the next spool file out of a damaged one and puts it in place. The damaged one must be closed. */
export function salvage(deps: SalvageDeps): SalvageResult {
  const { state, rows } = readWhatIsLeft(deps);
  const present = rows.reduce<MinuteRange[]>((ranges, row) => {
    const gaps = coversOf(row) ?? [];
    return gaps.reduce<MinuteRange[]>((all, gap) => addRange(all, gap.fromMinute, gap.toMinute), ranges);
  }, []);
  const covered = state?.covered ?? coveredWithoutState(present, deps);
  const through = Math.min(throughOf(state), deps.clock.nowMs() / 1000 + wrongFromSeconds);
  const lost = subtractRanges(covered, present, through).map(
    ([fromMinute, toMinute]): TelemetryGap => ({
      fromMinute,
      toMinute,
      capture: '',
      reason: 'spool_damaged',
    }),
  );
  const fresh: SpoolState = {
    format: spoolFormat,
    spoolId: randomUUID(),
    nextSequence: lost.length > 0 ? 2 : 1,
    covered,
    lastReceipt: state?.lastReceipt ?? null,
    ...(state?.delivered ? { delivered: state.delivered } : {}),
    ...(state?.lastStampedBy ? { lastStampedBy: state.lastStampedBy } : {}),
    ...(state?.lastCommit ? { lastCommit: state.lastCommit } : {}),
  };
  const next = nextSpoolFile(deps.directory, deps.file.generation);
  const store = openSpoolStore(next.building, deps.bytesMax);
  try {
    store.create(fresh);
    store.transaction(() => {
      if (lost.length > 0) {
        const identity = { position: 1, spoolId: fresh.spoolId, sequence: 1, madeAtMs: deps.clock.nowMs() };
        store.insertUpload(gapRow(deps, identity, lost));
      }
      for (const [i, row] of rows.entries()) store.insertUpload({ ...row, position: i + 2 });
    });
    store.truncateWal();
  } finally {
    store.close();
  }
  takeOver(deps.directory, deps.file.generation, next);
  return { intactUploads: rows.length, lost };
}

/**
 * The newest state and all rows that wait. Records that were deleted may show up again in freed pages: rows up to the
 * last receipt are left out, and any other is a repetition to the monitor, because its identity is the same.
 */
function readWhatIsLeft(deps: SalvageDeps): WhatIsLeft {
  const { directory } = deps;
  let state: SpoolState | null = null;
  const candidates: UploadRow[] = [];
  for (const { rowid, values } of readPageRecords(deps.file.path)) {
    if (values.length === 3) {
      const found = fromStored({ body: values[1], sha256: values[2] });
      if (found && isNewer(found, state)) state = found;
    } else if (values.length === 9) {
      const [, spoolId, sequence, madeAtMs, kind, covers, coversSha256, payload, sha256] = values;
      const row = {
        spoolId: asText(spoolId),
        sequence,
        madeAtMs,
        kind: asText(kind),
        covers: asText(covers),
        coversSha256,
        payload,
        sha256,
        position: rowid,
      };
      const intact = intactRow(deps, row as UploadRow);
      if (intact) candidates.push(intact);
    }
  }
  // Readable data of the file is newer than the copy beside it.
  state ??= fromStored(readStateCopy(directory));
  // A receipt of years to come would take everything for delivered; then what may be a repetition is sent again.
  const told = throughOf(state);
  const through = told > deps.clock.nowMs() / 1000 + wrongFromSeconds ? Number.NEGATIVE_INFINITY : told;
  const distinct = new Map<string, UploadRow>();
  for (const row of candidates) {
    const waits = row.kind !== 'minutes' || (coversOf(row) ?? []).some((gap) => gap.toMinute > through);
    if (waits) distinct.set(`${row.spoolId} ${row.sequence}`, row);
  }
  return { state, rows: [...distinct.values()].sort((a, b) => a.position - b.position) };
}

/** One bit in a record's header tells text from bytes of the same length; the digests fit both, the new file takes text. */
function asText(value: RecordValue | undefined): RecordValue | undefined {
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : value;
}

/** The last minute that was delivered. */
function throughOf(state: SpoolState | null): number {
  return state?.lastReceipt?.throughMinute ?? Number.NEGATIVE_INFINITY;
}

function isNewer(found: SpoolState, known: SpoolState | null): boolean {
  if (!known) return true;
  const receiptAt = (state: SpoolState) => state.lastReceipt?.atMs ?? 0;
  return (
    found.nextSequence > known.nextSequence ||
    (found.nextSequence === known.nextSequence && receiptAt(found) > receiptAt(known))
  );
}

/** The row, when its identity and payload are what was stored; everything else in it follows from those. */
function intactRow(deps: SalvageDeps, row: UploadRow): UploadRow | null {
  if (!payloadIsIntact(row) || typeof row.madeAtMs !== 'number') return null;
  return coversOf(row) ? row : renumberedRow(deps, row, row);
}

/** Nothing tells which minutes had been collected: all since the first that is known, or since the file last changed. */
function coveredWithoutState(present: readonly MinuteRange[], deps: SalvageDeps): MinuteRange[] {
  const thisMinute = Math.floor(deps.clock.nowMs() / 60_000) * 60;
  const changed = Math.floor(statSync(deps.file.path).mtimeMs / 60_000) * 60;
  const from = Math.min(present[0]?.[0] ?? changed, changed);
  return from <= thisMinute - 60 ? addRange(present, from, thisMinute - 60) : [...present];
}
