import { statfsSync } from 'node:fs';
import type { SensorCondition } from '#contracts/sensor-api/live.ts';
import type { SpoolStatus } from '#sensor/spool/index.ts';

/** What the host has room for, or null where its file system does not tell. */
export function readCondition(
  directory: string,
  spool: Pick<SpoolStatus, 'pendingBytes' | 'pendingBytesMax' | 'pendingUploads'>,
  isPaused: boolean,
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
      isPaused,
    };
  } catch {
    return null;
  }
}
