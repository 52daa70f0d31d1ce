import { statfsSync } from 'node:fs';
import type { CaptureCondition, SensorCondition } from '#contracts/sensor-api/live.ts';
import type { SpoolStatus } from '#sensor/spool/index.ts';

/** Free space of the host, or null when its file system does not report it. */
export function readCondition(
  directory: string,
  spool: Pick<SpoolStatus, 'pendingBytes' | 'pendingBytesMax' | 'pendingUploads'>,
  collection: {
    isPaused: boolean;
    captures: readonly (CaptureCondition & { whyNotKernel?: string | null })[];
  },
  nowMs: number,
): SensorCondition | null {
  try {
    const disk = statfsSync(directory);
    return {
      observedAtMs: nowMs,
      spoolPendingBytes: spool.pendingBytes,
      spoolBytesMax: spool.pendingBytesMax,
      spoolPendingUploads: spool.pendingUploads,
      diskFreeBytes: disk.bavail * disk.bsize,
      diskBytes: disk.blocks * disk.bsize,
      isPaused: collection.isPaused,
      captures: collection.captures.map(({ name, role, isListening, whyNotKernel }) => ({
        ...{ name, role, isListening },
        ...(whyNotKernel === undefined ? {} : { isCountedInKernel: whyNotKernel === null }),
      })),
    };
  } catch {
    return null;
  }
}
