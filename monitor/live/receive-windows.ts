import type { LiveReceipt } from '#contracts/sensor-api/http.ts';
import { decodeLive, liveBytesMax } from '#contracts/sensor-api/live-codec.ts';
import { decompressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import type { LiveDeps } from './index.ts';
import { deleteAged, deleteOverLength, insertWindow, lockSite } from './store.ts';

/**
 * Stores windows and keeps the site's bounds in the same transaction, under the site's lock, so that nobody ever sees
 * more than may be held.
 */
export async function receiveWindows(
  deps: LiveDeps,
  sensor: EnrolledSensor,
  body: Uint8Array,
  encoding: string | undefined,
): Promise<LiveReceipt> {
  const upload = decodeLive(decompressUpload(body, encoding, liveBytesMax));
  // First: a store that is full must not keep a sensor from saying that it is full itself.
  if (upload.condition) await deps.noteCondition?.(sensor.id, upload.condition);
  return deps
    .db()
    .transaction()
    .execute(async (trx) => {
      const { nowMs } = await lockSite(trx, sensor.siteId);
      const receipt = { stored: 0, duplicates: 0, too_old: 0 };
      for (const window of upload.windows) {
        // A clock that runs ahead would pin its windows at the newest end.
        const ageMs = nowMs - window.startedAtMs;
        if (ageMs >= deps.historySeconds * 1000 || ageMs < -60_000) receipt.too_old += 1;
        else if (await insertWindow(trx, sensor, upload.runId, window)) receipt.stored += 1;
        else receipt.duplicates += 1;
      }
      await deleteAged(trx, sensor.siteId, deps.historySeconds);
      await deleteOverLength(trx, sensor.siteId, deps.historyMax);
      return receipt;
    });
}
