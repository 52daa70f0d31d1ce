/** Uploads of a batch in parts that are written at once. */
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import type { FactUpload } from '../contract/facts.ts';

/** Rows that are written in one statement a table; a single minute is never divided. */
export const appendRowsMax = 32_768;

/** Uploads in parts of bounded size, so that the largest do not keep this process from everything else. */
export function divideUploads(uploads: readonly FactUpload[]): FactUpload[][] {
  const parts: FactUpload[][] = [];
  let part: FactUpload[] = [];
  let rows = 0;
  for (const upload of uploads) {
    let minutes: TelemetryMinute[] = [];
    part.push({ ...upload, minutes });
    for (const minute of upload.minutes) {
      const more = minute.hosts.length + minute.usage.length;
      if (rows > 0 && rows + more > appendRowsMax) {
        parts.push(part);
        minutes = [];
        part = [{ ...upload, minutes }];
        rows = 0;
      }
      minutes.push(minute);
      rows += more;
    }
  }
  return [...parts, part];
}
