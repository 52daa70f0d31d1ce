/** Sends an upload as a sensor does. */
import { compressUpload, encodeUpload, type TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';

/** Returns the receipt of the server at this URL; undefined where it refuses the upload. */
export async function postUpload(
  url: string,
  credential: string,
  upload: TelemetryUpload,
): Promise<string | undefined> {
  const answer = await fetch(`${url}/agent/v1/telemetry`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-protobuf',
      'content-encoding': 'zstd',
      authorization: `Bearer ${credential}`,
    },
    body: Buffer.from(compressUpload(encodeUpload(upload))),
  });
  return ((await answer.json()) as { receipt?: string }).receipt;
}
