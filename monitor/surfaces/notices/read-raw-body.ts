import type { Readable } from 'node:stream';
import { HttpError } from '#service-kit/http/index.ts';

/**
 * Reads a body up to a limit. Above it the answer is 413 and the connection is closed, so that the rest is not
 * received.
 */
export async function readRawBody(payload: Readable, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of payload as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > bytesMax) {
      throw new HttpError(
        413,
        { code: 'payload_too_large', message: `A notice must not hold more than ${bytesMax} bytes.` },
        { connection: 'close' },
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
