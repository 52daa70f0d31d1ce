import { createHash } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import { retentionRefusalMessage, type TelemetryReceipt } from '#contracts/sensor-api/http.ts';
import {
  decodeUpload,
  decompressUpload,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import type { InboxDeps } from './index.ts';
import { findKnown, insertUpload } from './store.ts';

/** A minute further ahead than this comes from a clock that is wrong, and would sit in the future for ever. */
const aheadSecondsMax = 3600;

/**
 * Stores an upload under its identity, or recognises it.
 *
 * A redelivery is recognised before anything else is judged: what was applied must not be refused later because it
 * has aged meanwhile, or the sensor would report a gap where there is none.
 */
export async function receiveUpload(
  deps: InboxDeps,
  sensor: EnrolledSensor,
  body: Uint8Array,
  encoding: string | undefined,
): Promise<TelemetryReceipt> {
  const bytes = decompressUpload(body, encoding);
  const upload = decodeUpload(bytes);
  const digest = createHash('sha256').update(bytes).digest();
  const answer = (receipt: 'accepted' | 'duplicate') => ({
    spool_id: upload.spoolId,
    sequence: upload.sequence,
    receipt,
  });

  const known = await findKnown(deps.db(), sensor.id, upload);
  if (known.isCovered) return answer('duplicate');
  if (known.digest) return answer(sameUpload(known.digest, digest));
  judgeMinutes(upload, known);

  const minutes = upload.minutes.map((minute) => minute.minute);
  const row = {
    sensorId: sensor.id,
    siteId: sensor.siteId,
    spoolId: upload.spoolId,
    sequence: upload.sequence,
    digest,
    encoding: encoding ?? 'identity',
    body,
    firstMinute: minutes.length > 0 ? Math.min(...minutes) : null,
    lastMinute: minutes.length > 0 ? Math.max(...minutes) : null,
  };
  const isNew = await deps
    .db()
    .transaction()
    .execute(async (trx) => {
      const isInserted = await insertUpload(trx, row);
      await deps.sensors.noteContact(trx, {
        sensorId: sensor.id,
        sensorVersion: upload.sensorVersion,
        spoolId: upload.spoolId,
        sequence: upload.sequence,
        newestMinute: row.lastMinute,
      });
      return isInserted;
    });
  if (isNew) return answer('accepted');
  // Two deliveries met: the other one stored it between our look and our insert.
  const stored = await findKnown(deps.db(), sensor.id, upload);
  return answer(stored.digest ? sameUpload(stored.digest, digest) : 'duplicate');
}

function sameUpload(stored: Buffer, digest: Buffer): 'duplicate' {
  if (stored.equals(digest)) return 'duplicate';
  throw refused(
    'this spool has used that sequence for another upload; the spool file was probably restored from a copy',
  );
}

/** NET-7.1 speaks of minutes; a gap of any age is taken, or the note of a refusal would be refused in turn. */
function judgeMinutes(upload: TelemetryUpload, window: { oldestSecond: number; nowSecond: number }): void {
  for (const { minute } of upload.minutes) {
    if (minute < window.oldestSecond) throw refused(retentionRefusalMessage);
    if (minute > window.nowSecond + aheadSecondsMax) {
      throw refused('minute telemetry lies in the future; set the clock of this host');
    }
  }
}

function refused(message: string): CodedError {
  return new CodedError('telemetry.refused', message);
}
