/**
 * Uploads as they were decoded on receipt, held until they are applied, so that each is decoded once.
 *
 * A worker of the process that received an upload takes it from here. What is not here is decoded from the stored
 * bytes: after a restart, when another process applies the upload, or when a backlog does not fit the bound. Memory is
 * bounded by the decoded size of one largest upload. Workers apply the oldest uploads first, so a full hold refuses
 * new ones instead of dropping what is needed next. Uploads that another process applied leave after a minute.
 */
import type { Clock } from '#common/clock/index.ts';
import { decodedBytesMax } from '#contracts/sensor-api/decode-slices.ts';
import type { ReadUpload } from '#monitor/intake/index.ts';

/** After so long an upload makes room for others. */
const heldMs = 60_000;

/** Identifies an upload, and by its digest what it holds. */
export interface UploadKey {
  sensorId: number;
  spoolId: string;
  sequence: number;
  /** SHA-256 of its decompressed bytes. */
  digest: Buffer;
}

export type DecodedUploads = ReturnType<typeof createDecodedUploads>;

/** Holds up to `bytesMax` of decoded uploads, by the costs of `wire-bounds.ts`; with 0 nothing is held. */
export function createDecodedUploads(clock: Pick<Clock, 'monotonicMs'>, bytesMax = decodedBytesMax) {
  /** In the order of their age. */
  const held = new Map<string, { read: ReadUpload; sinceMs: number }>();
  let bytes = 0;

  const nameOf = ({ sensorId, spoolId, sequence }: UploadKey) => `${sensorId} ${spoolId} ${sequence}`;

  function remove(name: string): void {
    bytes -= held.get(name)?.read.decodedBytes ?? 0;
    held.delete(name);
  }

  function removeOld(): void {
    const oldest = clock.monotonicMs() - heldMs;
    for (const [name, { sinceMs }] of held) {
      if (sinceMs > oldest) return;
      remove(name);
    }
  }

  return {
    /**
     * Holds an upload. Returns what forgets it again if it is not stored; that does nothing where the upload was held
     * before, by another delivery of it, or found no room.
     */
    hold(key: UploadKey, read: ReadUpload): () => void {
      removeOld();
      const name = nameOf(key);
      if (held.has(name) || bytes + read.decodedBytes > bytesMax) return () => {};
      held.set(name, { read, sinceMs: clock.monotonicMs() });
      bytes += read.decodedBytes;
      return () => {
        if (held.get(name)?.read === read) remove(name);
      };
    },
    /** The upload with this identity and digest, or null. It stays until it is forgotten. */
    find(key: UploadKey): ReadUpload | null {
      const read = held.get(nameOf(key))?.read;
      return read?.digest.equals(key.digest) ? read : null;
    },
    /** Forgets uploads that were applied. */
    forget(keys: readonly UploadKey[]) {
      for (const key of keys) remove(nameOf(key));
    },
  };
}
