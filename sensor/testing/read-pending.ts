import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import {
  decodeUpload,
  decompressUpload,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool } from '#sensor/spool/index.ts';

/** What waits in the spool of a sensor that has ended. */
export function readPending(directory: string): TelemetryUpload[] {
  const spool = createSpool({
    ...{ directory, bytesMax: 160 << 20, sensorVersion: '', kinds: recordKinds },
    ...{ clock: systemClock, reporter: silentReporter },
  });
  spool.open();
  const uploads: TelemetryUpload[] = [];
  for (let upload = spool.oldest(); upload; upload = spool.oldest()) {
    uploads.push(decodeUpload(decompressUpload(upload.body, 'zstd')));
    spool.acknowledge(upload, 'accepted');
  }
  spool.close();
  return uploads;
}
