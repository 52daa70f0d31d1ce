/**
 * Reads uploads of sensors: decompresses and decodes within limits, in slices, and in fair turns.
 *
 * An upload that exceeds its contract or would take more than 64 MiB is not decoded. An upload of one slice is read at
 * once. A larger one first waits for a turn, and lets other requests run after each slice, so that neither one upload
 * nor one sensor blocks this process. A sensor with unreadable uploads is delayed. Features receive the decoded upload
 * as consumers (`upload-consumer.ts`).
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

export { ConsumerAway, keptSeconds, type SkippedUpload, type UploadConsumer } from './upload-consumer.ts';

/** A decoded upload. */
export interface DecodedUpload {
  upload: TelemetryUpload;
  /** Rows that were left out of it. */
  setAside: SetAside;
  /** Memory of the decoded upload, by the costs of `wire-bounds.ts`. */
  decodedBytes: number;
}

/** A received upload. */
export interface ReadUpload extends DecodedUpload {
  /** SHA-256 of the decompressed bytes. */
  digest: Buffer;
}

/** A received live upload. */
interface ReadLive {
  upload: LiveUpload;
  /** Rows that were left out of it. */
  setAside: LiveSetAside;
}

export type Intake = ReturnType<typeof createIntake>;

/** Uploads of more than one slice that are read at the same time. */
const turnsMax = 4;
/** Bytes that are digested in one slice. */
const digestBytes = 256 * 1024;

export function createIntake(deps: {
  clock: Pick<Clock, 'monotonicMs'>;
  /** Called with the work of each slice. */
  onSlice?: (work: SliceWork) => void;
}) {
  const throttle = createThrottle(deps.clock);
  const turns = createTurns(turnsMax);

  /** Runs `read`; a turn is taken when the first slice is full. */
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
  async function decodeUpload(bytes: Uint8Array, pause: () => Promise<void>): Promise<DecodedUpload> {
    let decodedBytes = 0;
    const setAside = createSetAside();
    const upload = await decode(function* (slice) {
      const decoded = yield* decodeUploadSliced(bytes, slice, setAside);
      decodedBytes = slice.decodedBytes;
      return decoded;
    }, pause);
    return { upload, setAside, decodedBytes };
  }

  return {
    /** Admits a sensor's request before its body is read; call the result when it has ended. Throws `Throttled`. */
    admit: (sensorId: number): (() => void) => throttle.admit(sensorId),
    /** Throws `telemetry.malformed`, `telemetry.encoding_unsupported`, `telemetry.too_large`. */
    readUpload: (sensorId: number, body: Uint8Array, encoding: string | undefined): Promise<ReadUpload> =>
      inTurns(sensorId, async (pause) => {
        const bytes = await decompressInPieces(body, encoding, uploadBytesMax, pause);
        const decoded = await decodeUpload(bytes, pause);
        return { ...decoded, digest: await digestOf(bytes, pause) };
      }),
    /** Reads an upload that this monitor has stored, and which is therefore valid: in slices too, but without a turn. */
    async readStored(body: Uint8Array, encoding: string): Promise<DecodedUpload> {
      const pause = () => setImmediate();
      return decodeUpload(await decompressInPieces(body, encoding, uploadBytesMax, pause), pause);
    },
    /** Like `readUpload`, for a live upload. */
    readLive: (sensorId: number, body: Uint8Array, encoding: string | undefined): Promise<ReadLive> =>
      inTurns(sensorId, async (pause) => {
        const bytes = await decompressInPieces(body, encoding, liveBytesMax, pause);
        const setAside = { rows: 0 };
        return { upload: await decode((slice) => decodeLiveSliced(bytes, slice, setAside), pause), setAside };
      }),
  };
}

async function digestOf(bytes: Uint8Array, pause: () => Promise<void>): Promise<Buffer> {
  const hash = createHash('sha256');
  for (let at = 0; at < bytes.length; at += digestBytes) {
    if (at > 0) await pause();
    hash.update(bytes.subarray(at, at + digestBytes));
  }
  return hash.digest();
}

/**
 * Turns for work of more than one slice: a few at a time, one for each sensor, in the order in which sensors asked. A
 * sensor with a thousand large uploads delays another sensor's upload by one upload.
 */
function createTurns(turnsMax: number) {
  /** Waiting requests by sensor; the sensor with the last turn is at the end. */
  const waiting = new Map<number, (() => void)[]>();
  const running = new Set<number>();

  function start(): void {
    for (const [sensorId, queue] of waiting) {
      if (running.size >= turnsMax) return;
      if (running.has(sensorId)) continue;
      const begin = queue.shift()!;
      waiting.delete(sensorId);
      if (queue.length > 0) waiting.set(sensorId, queue);
      running.add(sensorId);
      begin();
    }
  }

  return {
    /** Waits for a turn; call the result to end it. */
    async take(sensorId: number): Promise<() => void> {
      await new Promise<void>((begin) => {
        const queue = waiting.get(sensorId);
        if (queue) queue.push(begin);
        else waiting.set(sensorId, [begin]);
        start();
      });
      return () => {
        running.delete(sensorId);
        start();
      };
    },
  };
}

/** Concurrent requests of one sensor: it sends one upload, and live windows beside it. */
const underWayMax = 8;
/** Unreadable uploads of one sensor per minute; a working sensor sends none. */
const malformedMax = 30;
const windowMs = 60_000;

/** Thrown for a sensor that sends too much; it keeps its data and retries. */
export class Throttled extends CodedError {
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds: number) {
    super('intake.throttled', message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Prevents one sensor from using this process alone. */
function createThrottle(clock: Pick<Clock, 'monotonicMs'>) {
  const underWay = new Map<number, number>();
  /** For each sensor, the present time window and the number of malformed uploads in it. */
  const malformed = new Map<number, { endsAtMs: number; count: number }>();

  function waitMs(sensorId: number): number {
    const window = malformed.get(sensorId);
    if (!window) return 0;
    const left = window.endsAtMs - clock.monotonicMs();
    if (left <= 0) malformed.delete(sensorId);
    return left > 0 && window.count >= malformedMax ? left : 0;
  }

  return {
    /** Admits a request before its body is read; call the result when it has ended. Throws `Throttled`. */
    admit(sensorId: number): () => void {
      const wait = waitMs(sensorId);
      if (wait > 0) {
        const message = `This sensor sent ${malformedMax} unreadable uploads within a minute. Check its version and its host.`;
        throw new Throttled(message, Math.ceil(wait / 1000));
      }
      const count = underWay.get(sensorId) ?? 0;
      if (count >= underWayMax) {
        throw new Throttled(
          `This sensor has ${underWayMax} concurrent requests. Send one after the other.`,
          1,
        );
      }
      underWay.set(sensorId, count + 1);
      let hasEnded = false;
      return () => {
        if (hasEnded) return;
        hasEnded = true;
        const left = underWay.get(sensorId)! - 1;
        if (left > 0) underWay.set(sensorId, left);
        else underWay.delete(sensorId);
      };
    },
    /** Records an unreadable upload. */
    noteMalformed(sensorId: number) {
      const window = malformed.get(sensorId);
      if (window && window.endsAtMs > clock.monotonicMs()) window.count += 1;
      else malformed.set(sensorId, { endsAtMs: clock.monotonicMs() + windowMs, count: 1 });
    },
  };
}
