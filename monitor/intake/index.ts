/**
 * Reads what sensors send: decompressed and decoded within bounds, in slices, and in fair turns.
 *
 * Nothing is decoded of an upload that holds more than its contract allows or would take more than 64 MiB. What fits
 * one slice is read at once; what needs more gives way to other requests after each slice, and waits for a turn first,
 * so that neither one upload nor one sensor holds this process. A sensor whose uploads can't be read is put off.
 */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { runInSlices, type Slice, type Sliced, type SliceWork } from '#contracts/sensor-api/decode-slices.ts';
import { uploadBytesMax } from '#contracts/sensor-api/http.ts';
import { decodeLiveSliced, type LiveUpload, liveBytesMax } from '#contracts/sensor-api/live-codec.ts';
import { createSetAside, type LiveSetAside, type SetAside } from '#contracts/sensor-api/set-aside.ts';
import {
  decodeUploadSliced,
  decompressInPieces,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { createThrottle } from './throttle.ts';
import { createTurns } from './turns.ts';

export { Throttled } from './throttle.ts';

/** An upload as it was read. */
export interface ReadUpload {
  upload: TelemetryUpload;
  /** SHA-256 of the decompressed bytes. */
  digest: Buffer;
  /** Rows that were left out of it. */
  setAside: SetAside;
  /** What it takes in memory, by the costs of `wire-bounds.ts`. */
  decodedBytes: number;
}

/** A live upload as it was read. */
export interface ReadLive {
  upload: LiveUpload;
  /** What was left out of it. */
  setAside: LiveSetAside;
}

export interface Intake {
  /** Lets a sensor's request in, before its body is read; call the result when it has ended. Throws `Throttled`. */
  admit(sensorId: number): () => void;
  /** Throws `telemetry.malformed`, `telemetry.encoding_unsupported`, `telemetry.too_large`. */
  readUpload(sensorId: number, body: Uint8Array, encoding: string | undefined): Promise<ReadUpload>;
  /** Likewise. */
  readLive(sensorId: number, body: Uint8Array, encoding: string | undefined): Promise<ReadLive>;
}

export interface IntakeDeps {
  clock: Pick<Clock, 'monotonicMs'>;
  /** Told of the work of each slice. */
  onSlice?: (work: SliceWork) => void;
}

/** Uploads of more than one slice that are read at a time. */
const turnsMax = 4;
/** Bytes that are digested in one slice. */
const digestBytes = 256 * 1024;

export function createIntake(deps: IntakeDeps): Intake {
  const throttle = createThrottle(deps.clock);
  const turns = createTurns(turnsMax);

  /** Runs `read` with a turn that is taken when the first slice is full. */
  async function inTurns<T>(sensorId: number, read: (pause: () => Promise<void>) => Promise<T>): Promise<T> {
    let end: (() => void) | null = null;
    const pause = async () => {
      if (end) await setImmediate();
      else end = await turns.take(sensorId);
    };
    try {
      return await read(pause);
    } catch (error) {
      const isMalformed =
        error instanceof CodedError &&
        (error.code === 'telemetry.malformed' || error.code === 'telemetry.too_large');
      if (isMalformed) throttle.noteMalformed(sensorId);
      throw error;
    } finally {
      (end as (() => void) | null)?.();
    }
  }

  const decode = <T>(work: (slice: Slice) => Sliced<T>, pause: () => Promise<void>) =>
    runInSlices(work, { pause, onSlice: deps.onSlice });

  return {
    admit: (sensorId) => throttle.admit(sensorId),
    readUpload: (sensorId, body, encoding) =>
      inTurns(sensorId, async (pause) => {
        const bytes = await decompressInPieces(body, encoding, uploadBytesMax, pause);
        let decodedBytes = 0;
        const setAside = createSetAside();
        const upload = await decode(function* (slice) {
          const decoded = yield* decodeUploadSliced(bytes, slice, setAside);
          decodedBytes = slice.decodedBytes;
          return decoded;
        }, pause);
        return { upload, setAside, digest: await digestOf(bytes, pause), decodedBytes };
      }),
    readLive: (sensorId, body, encoding) =>
      inTurns(sensorId, async (pause) => {
        const bytes = await decompressInPieces(body, encoding, liveBytesMax, pause);
        const setAside = { rows: 0 };
        return { upload: await decode((slice) => decodeLiveSliced(bytes, slice, setAside), pause), setAside };
      }),
  };
}

/** Reads an upload that this monitor has stored: in slices too, but without a turn. */
export async function readStored(
  body: Uint8Array,
  encoding: string,
): Promise<Omit<ReadUpload, 'digest'> & { rows: number }> {
  const pause = () => setImmediate();
  const bytes = await decompressInPieces(body, encoding, uploadBytesMax, pause);
  const setAside = createSetAside();
  let decodedBytes = 0;
  let rows = 0;
  const onSlice = (work: SliceWork) => {
    rows += work.rows;
  };
  const upload = await runInSlices(
    function* (slice) {
      const decoded = yield* decodeUploadSliced(bytes, slice, setAside);
      decodedBytes = slice.decodedBytes;
      return decoded;
    },
    { pause, onSlice },
  );
  return { upload, setAside, decodedBytes, rows };
}

async function digestOf(bytes: Uint8Array, pause: () => Promise<void>): Promise<Buffer> {
  const hash = createHash('sha256');
  for (let at = 0; at < bytes.length; at += digestBytes) {
    if (at > 0) await pause();
    hash.update(bytes.subarray(at, at + digestBytes));
  }
  return hash.digest();
}
