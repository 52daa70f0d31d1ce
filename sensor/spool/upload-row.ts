/** Rows of the queue: how an upload and the gaps that stand for it become bytes with digests, and back. */
import {
  captureMinutesMax,
  compressUpload,
  decodeUpload,
  decompressUpload,
  encodeUpload,
  fitsReceiver,
  gapsMax,
  type TelemetryGap,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { type Before, settleGaps } from './minute-ranges.ts';
import {
  divideByPriority,
  isWorthSending,
  type RecordKind,
  restampContent,
  type UploadContent,
} from './record-kind.ts';
import { digestMatches, digestOf } from './spool-state.ts';
import type { Shift } from './stamps.ts';
import type { UploadRow } from './store.ts';

/** How rows are made. */
export interface RowOptions {
  kinds: readonly RecordKind[];
  sensorVersion: string;
}

export interface UploadIdentity {
  /** Place in the queue. */
  position: number;
  spoolId: string;
  sequence: number;
  madeAtMs: number;
}

/** The row of an upload with these records. */
function uploadRow(
  { kinds, sensorVersion }: RowOptions,
  { position, spoolId, sequence, madeAtMs }: UploadIdentity,
  content: UploadContent,
): UploadRow {
  const payload = compressUpload(encodeUpload({ spoolId, sequence, sensorVersion, ...content }));
  const kind = rowKindOf(kinds, content);
  const covers = JSON.stringify(kinds.flatMap((one) => one.lostAs(content)));
  return {
    position,
    spoolId,
    sequence,
    madeAtMs,
    kind,
    covers,
    coversSha256: digestOf(kind, covers),
    payload,
    sha256: digestOf(spoolId, String(sequence), payload),
  };
}

/** `minutes`, the name of an urgent kind, or `gaps` for anything else. */
function rowKindOf(kinds: readonly RecordKind[], content: UploadContent): string {
  if (content.minutes.length > 0) return 'minutes';
  return kinds.find((one) => one.priority === 'urgent' && one.count(content) > 0)?.name ?? 'gaps';
}

/** Rows of one commit, with positions and numbers that follow one another. */
export interface CommitRows {
  all: UploadRow[];
  /** Those that go on with the minutes of the row before. */
  parts: UploadRow[];
}

/**
 * The rows of as many uploads as these records need: one for each urgent kind, and more than one for the others where an
 * upload would be larger than the wire takes. One minute of one capture is never divided.
 */
export function uploadRows(options: RowOptions, first: UploadIdentity, content: UploadContent): CommitRows {
  const { urgent, bulk } = divideByPriority(options.kinds, content);
  const at = (offset: number) => ({
    ...first,
    position: first.position + offset,
    sequence: first.sequence + offset,
  });
  const ahead = urgent.map((records, i) => uploadRow(options, at(i), records));
  const others = bulk ? bulkRows(options, at(urgent.length), bulk) : [];
  return { all: [...ahead, ...others], parts: others.slice(1) };
}

function bulkRows(options: RowOptions, first: UploadIdentity, content: UploadContent): UploadRow[] {
  const { minutes, gaps } = content;
  const { spoolId, sequence: firstSequence } = first;
  const { sensorVersion } = options;
  const isSmall =
    minutes.length <= captureMinutesMax &&
    gaps.length <= gapsMax &&
    (minutes.length < 2 ||
      fitsReceiver(encodeUpload({ spoolId, sequence: firstSequence, sensorVersion, ...content })));
  if (isSmall) return [uploadRow(options, first, content)];
  const half = Math.ceil(minutes.length / 2);
  const gapsHere = gaps.slice(
    0,
    half > 0 && gaps.length <= gapsMax ? gaps.length : Math.ceil(gaps.length / 2),
  );
  const before = bulkRows(options, first, { ...content, minutes: minutes.slice(0, half), gaps: gapsHere });
  const { position, sequence } = before.at(-1)!;
  const next = { ...first, position: position + 1, sequence: sequence + 1 };
  const rest = { minutes: minutes.slice(half), gaps: gaps.slice(gapsHere.length) };
  return [...before, ...bulkRows(options, next, rest)];
}

/** The row of an upload of gaps alone. */
export function gapRow(options: RowOptions, identity: UploadIdentity, gaps: TelemetryGap[]): UploadRow {
  return uploadRow(options, identity, { minutes: [], gaps });
}

/** The same content under another identity. Throws when the payload is damaged. */
export function renumberedRow(options: RowOptions, row: UploadRow, identity: UploadIdentity): UploadRow {
  return rowOf(options, identity, decodeRow(row));
}

/** The same bytes with other times; null where no time is left in it. */
export function restampedRow(
  options: RowOptions,
  row: UploadRow,
  identity: UploadIdentity,
  { shift, nowMs }: { shift: Shift; nowMs: number },
): UploadRow | null {
  const restamped = restampContent(options.kinds, decodeRow(row), shift, nowMs);
  return rowUnlessEmpty(options, identity, restamped);
}

/** The upload as it is to be sent, with `row: null` where nothing is left of it; null: as it is. */
export function settledRow(
  options: RowOptions,
  row: UploadRow,
  before: Before,
): { row: UploadRow | null } | null {
  // Without their captures no gap names them, so an upload that is left as it is need not be decoded.
  const minutes = minutesOf(row).map((minute) => ({ minute, capture: '', observedMs: 60_000 }));
  const gaps = (coversOf(row) ?? []).filter((gap) => row.kind === 'gaps' || gap.reason !== 'refused');
  if (!settleGaps(minutes, gaps, before)) return null;
  const decoded = decodeRow(row);
  const settled = settleGaps(decoded.minutes, decoded.gaps, before);
  return settled && { row: rowUnlessEmpty(options, row, { ...decoded, gaps: settled }) };
}

const decodeRow = (row: UploadRow) => decodeUpload(decompressUpload(row.payload, 'zstd'));

/** The row of what an earlier row held, with the version of the sensor that made it. */
function rowOf(options: RowOptions, identity: UploadIdentity, upload: TelemetryUpload): UploadRow {
  const { sensorVersion, spoolId: _, sequence: __, ...content } = upload;
  return uploadRow({ ...options, sensorVersion }, identity, content);
}

function rowUnlessEmpty(
  options: RowOptions,
  identity: UploadIdentity,
  upload: TelemetryUpload,
): UploadRow | null {
  return isWorthSending(options.kinds, upload) ? rowOf(options, identity, upload) : null;
}

/** True when the payload is what was stored. */
export function payloadIsIntact(row: UploadRow): boolean {
  return digestMatches(row.sha256, row.spoolId, String(row.sequence), row.payload);
}

/** The gaps that stand for an upload, or null when even they are damaged. Minutes carry the reason `refused`. */
export function coversOf(row: UploadRow): TelemetryGap[] | null {
  if (!digestMatches(row.coversSha256, row.kind, row.covers)) return null;
  return JSON.parse(row.covers) as TelemetryGap[];
}

/** The last minute that a row tells of; 0 where even that is damaged. */
export function lastMinuteOf(row: UploadRow): number {
  return Math.max(0, ...(coversOf(row) ?? []).map((gap) => gap.toMinute));
}

/** The minutes that a row holds; none where even that is damaged. */
export function minutesOf(row: UploadRow): number[] {
  if (row.kind !== 'minutes') return [];
  return (coversOf(row) ?? []).filter((gap) => gap.reason === 'refused').map((gap) => gap.fromMinute);
}

/** As `coversOf`; where not even that can be read, the minute before the record was made, which is what it held. */
export function coversOrGap(row: UploadRow): TelemetryGap[] {
  const minute = Math.floor(row.madeAtMs / 60_000) * 60 - 60;
  return coversOf(row) ?? [{ fromMinute: minute, toMinute: minute, capture: '', reason: 'spool_damaged' }];
}
