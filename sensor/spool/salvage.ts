/**
 * Saves what is intact in a damaged spool into a new file, and says exactly which minutes are lost.
 *
 * Uploads keep their identity: one of them may already lie at the monitor, and under a new number it would count
 * twice. The new file's own numbers start at 1 under a new UUID.
 */
import { randomUUID } from 'node:crypto';
import { rmSync, statSync } from 'node:fs';
import type { Clock } from '#common/clock/index.ts';
import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
import { copyWithFirstPage } from './first-page.ts';
import { addRange, type MinuteRange, subtractRanges } from './minute-ranges.ts';
import { nextSpoolFile, type SpoolFile, takeOver } from './spool-file.ts';
import { type SpoolState, spoolFormat } from './spool-state.ts';
import { openDamagedStore, openSpoolStore, type SpoolStore, type UploadRow } from './store.ts';
import { coversOf, gapRow } from './upload-row.ts';

/** Positions tried one by one after the last one that could be found by walking. */
const probesPastEnd = 64;

export interface SalvageResult {
  intactUploads: number;
  lost: TelemetryGap[];
}

interface WhatIsLeft {
  state: SpoolState | null;
  rows: UploadRow[];
}

export interface SalvageDeps {
  directory: string;
  file: SpoolFile;
  bytesMax: number;
  clock: Clock;
  sensorVersion: string;
}

/** Builds the next spool file out of a damaged one and puts it in place. The damaged one must be closed. */
export function salvage(deps: SalvageDeps): SalvageResult {
  const { state, rows } = readWhatIsLeft(deps);
  const present = rows.reduce<MinuteRange[]>((ranges, row) => {
    const gaps = coversOf(row) ?? [];
    return gaps.reduce<MinuteRange[]>((all, gap) => addRange(all, gap.fromMinute, gap.toMinute), ranges);
  }, []);
  const covered = state?.covered ?? coveredWithoutState(present, deps);
  const through = state?.lastReceipt?.throughMinute ?? Number.NEGATIVE_INFINITY;
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
  };
  const next = nextSpoolFile(deps.directory, deps.file.generation);
  const store = openSpoolStore(next.building, deps.bytesMax);
  try {
    store.create(fresh);
    store.transaction(() => {
      if (lost.length > 0) {
        const identity = { position: 1, spoolId: fresh.spoolId, sequence: 1, madeAtMs: deps.clock.nowMs() };
        store.insertUpload(gapRow(identity, lost, deps.sensorVersion));
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

/** Reads the file as it is and, when that yields little, once more with a new first page. */
function readWhatIsLeft(deps: SalvageDeps): WhatIsLeft {
  const asItIs = readDamaged(deps.file.path);
  if (asItIs.state && asItIs.rows.length > 0) return asItIs;
  const fresh = nextSpoolFile(deps.directory, deps.file.generation).building;
  const store = openSpoolStore(fresh, deps.bytesMax);
  store.create({
    format: spoolFormat,
    spoolId: randomUUID(),
    nextSequence: 1,
    covered: [],
    lastReceipt: null,
  });
  store.close();
  const copy = `${fresh}-first-page`;
  try {
    copyWithFirstPage(deps.file.path, fresh, copy);
    const patched = readDamaged(copy);
    const isBetter = patched.rows.length > asItIs.rows.length || (patched.state && !asItIs.state);
    return isBetter ? patched : asItIs;
  } finally {
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${copy}${suffix}`, { force: true });
  }
}

/** All rows whose gap text is intact; a damaged payload is replaced later by that text, when its turn comes. */
function readDamaged(path: string): WhatIsLeft {
  let store: SpoolStore;
  try {
    store = openDamagedStore(path);
  } catch {
    return { state: null, rows: [] };
  }
  try {
    const state = attempt(() => store.readState());
    const rows: UploadRow[] = [];
    const keep = (row: UploadRow | null | undefined) => {
      if (row && isReadable(row)) rows.push(row);
    };
    let position = attempt(() => store.firstUpload()?.position) ?? 0;
    const end = Math.max(attempt(() => store.lastPosition()) ?? 0, position) + probesPastEnd;
    // One look-up each: a damaged page costs the rows on it and none of those behind it.
    for (; position > 0 && position <= end; position += 1) keep(attempt(() => store.uploadAt(position)));
    return { state, rows };
  } finally {
    attempt(() => store.close());
  }
}

/** The gap text must be right; a damaged payload is replaced by it when its turn comes. */
function isReadable(row: UploadRow): boolean {
  const isStorable = row.payload instanceof Uint8Array && row.sha256 instanceof Uint8Array;
  return isStorable && typeof row.madeAtMs === 'number' && coversOf(row) !== null;
}

/** Nothing tells which minutes had been collected: all since the first that is known, or since the file last changed. */
function coveredWithoutState(present: readonly MinuteRange[], deps: SalvageDeps): MinuteRange[] {
  const thisMinute = Math.floor(deps.clock.nowMs() / 60_000) * 60;
  const changed = Math.floor(statSync(deps.file.path).mtimeMs / 60_000) * 60;
  const from = Math.min(present[0]?.[0] ?? changed, changed);
  return from <= thisMinute - 60 ? addRange(present, from, thisMinute - 60) : [...present];
}

function attempt<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
