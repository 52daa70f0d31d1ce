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
  type TelemetryMinute,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { type Shift, shiftUpload } from './restamp.ts';
import { type Before, settleGaps } from './settle.ts';
import { digestMatches, digestOf } from './spool-state.ts';
import type { UploadExtras } from './spooled-upload.ts';
import type { UploadRow } from './store.ts';

export interface UploadIdentity {
  position: number;
  spoolId: string;
  sequence: number;
  madeAtMs: number;
}

/** The row of an upload with these minutes and gaps. */
export function uploadRow(
  identity: UploadIdentity,
  minutes: readonly TelemetryMinute[],
  gaps: readonly TelemetryGap[],
  sensorVersion: string,
  extras: UploadExtras = {},
): UploadRow {
  const { spoolId, sequence } = identity;
  const payload = compressUpload(
    encodeUpload({
      spoolId,
      sequence,
      sensorVersion,
      minutes: [...minutes],
      gaps: [...gaps],
      ...extras,
    }),
  );
  const kind = minutes.length > 0 ? 'minutes' : 'gaps';
  const covers = JSON.stringify([...refusedMinutes(minutes), ...gaps]);
  const { position, madeAtMs } = identity;
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

/**
 * The rows of as many uploads as minutes and gaps need: more than one where an upload would be larger than the wire
 * takes, with positions and numbers that follow one another. One minute of one capture is never divided.
 */
export function uploadRows(
  first: UploadIdentity,
  minutes: readonly TelemetryMinute[],
  gaps: readonly TelemetryGap[],
  sensorVersion: string,
  extras: UploadExtras = {},
): UploadRow[] {
  const { spoolId, sequence: firstSequence } = first;
  const content = { spoolId, sequence: firstSequence, sensorVersion, ...extras };
  const isSmall =
    minutes.length <= captureMinutesMax &&
    gaps.length <= gapsMax &&
    (minutes.length < 2 ||
      fitsReceiver(encodeUpload({ ...content, minutes: [...minutes], gaps: [...gaps] })));
  if (isSmall) return [uploadRow(first, minutes, gaps, sensorVersion, extras)];
  const half = Math.ceil(minutes.length / 2);
  const gapsHere = gaps.slice(
    0,
    half > 0 && gaps.length <= gapsMax ? gaps.length : Math.ceil(gaps.length / 2),
  );
  const before = uploadRows(first, minutes.slice(0, half), gapsHere, sensorVersion, extras);
  const { position, sequence } = before.at(-1)!;
  const next = { ...first, position: position + 1, sequence: sequence + 1 };
  return [...before, ...uploadRows(next, minutes.slice(half), gaps.slice(gapsHere.length), sensorVersion)];
}

/** The row of an upload of gaps alone. */
export function gapRow(
  identity: UploadIdentity,
  gaps: readonly TelemetryGap[],
  sensorVersion: string,
): UploadRow {
  return uploadRow(identity, [], gaps, sensorVersion);
}

/** The same content under another identity. Throws when the payload is damaged. */
export function renumberedRow(row: UploadRow, identity: UploadIdentity): UploadRow {
  const { minutes, gaps, sensorVersion, ...upload } = decodeUpload(decompressUpload(row.payload, 'zstd'));
  const { spoolId: _, sequence: __, ...extras } = upload;
  return uploadRow(identity, minutes, gaps, sensorVersion, extras);
}

/** The same bytes with other times; null where no time is left in it. */
export function restampedRow(
  row: UploadRow,
  identity: UploadIdentity,
  shift: Shift,
  nowMs: number,
): UploadRow | null {
  const decoded = decodeUpload(decompressUpload(row.payload, 'zstd'));
  return rowUnlessEmpty(identity, shiftUpload(decoded, shift, nowMs));
}

/** The upload as it is to be sent, with `row: null` where nothing is left of it; null: as it is. */
export function settledRow(row: UploadRow, before: Before): { row: UploadRow | null } | null {
  const minutes = minutesOf(row);
  const gaps = (coversOf(row) ?? []).filter((gap) => row.kind === 'gaps' || gap.reason !== 'refused');
  if (!settleGaps(minutes, gaps, before)) return null;
  const decoded = decodeUpload(decompressUpload(row.payload, 'zstd'));
  const settled = settleGaps(minutes, decoded.gaps, before) ?? decoded.gaps;
  return { row: rowUnlessEmpty(row, { ...decoded, gaps: settled }) };
}

function rowUnlessEmpty(
  { position, spoolId, sequence, madeAtMs }: UploadIdentity,
  upload: TelemetryUpload,
): UploadRow | null {
  const { minutes, gaps, sensorVersion, spoolId: _, sequence: __, ...extras } = upload;
  const isEmpty = minutes.length === 0 && gaps.length === 0 && !extras.probes?.length;
  const identity = { position, spoolId, sequence, madeAtMs };
  return isEmpty ? null : uploadRow(identity, minutes, gaps, sensorVersion, extras);
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

/** Minutes of every capture as gaps, each minute once. */
function refusedMinutes(minutes: readonly TelemetryMinute[]): TelemetryGap[] {
  const distinct = [...new Set(minutes.map((one) => one.minute))].sort((a, b) => a - b);
  return distinct.map((minute) => ({ fromMinute: minute, toMinute: minute, capture: '', reason: 'refused' }));
}

/** As `coversOf`; where not even that can be read, the minute before the record was made, which is what it held. */
export function coversOrGap(row: UploadRow): TelemetryGap[] {
  const minute = Math.floor(row.madeAtMs / 60_000) * 60 - 60;
  return coversOf(row) ?? [{ fromMinute: minute, toMinute: minute, capture: '', reason: 'spool_damaged' }];
}
