/** Compression of uploads: the sensor compresses, the monitor decompresses what it does not trust. */
import {
  constants,
  createGunzip,
  createZstdDecompress,
  gunzipSync,
  gzipSync,
  zstdCompressSync,
  zstdDecompressSync,
} from 'node:zlib';
import { CodedError, describeError } from '#common/errors/index.ts';
import { uploadBytesMax } from './http.ts';
import { malformed } from './telemetry-values.ts';

/** Values of `Content-Encoding` for an upload, the best first. */
export const uploadEncodings = ['zstd', 'gzip', 'identity'] as const;
export type UploadEncoding = (typeof uploadEncodings)[number];

/** The body of an upload request under this `Content-Encoding`. */
export function compressUpload(bytes: Uint8Array, encoding: UploadEncoding = 'zstd'): Uint8Array {
  if (encoding === 'identity') return bytes;
  return encoding === 'gzip' ? gzipSync(bytes) : zstdCompressSync(bytes);
}

/** Bodies of up to so many bytes that become no more than so many are decompressed at once. */
const bodyAtOnceBytes = 64 * 1024;
const outputAtOnceBytes = 256 * 1024;
/** Bytes of one piece of a large body's output. */
const chunkBytes = 64 * 1024;
/** The most memory that a zstd frame may ask for its window, as a power of two: an upload's own size. */
const params = { [constants.ZSTD_d_windowLogMax]: 24 };

/**
 * The protobuf bytes out of a request body. `encoding` is the value of `Content-Encoding`: zstd, gzip, identity or
 * none. Throws `telemetry.encoding_unsupported`, `telemetry.malformed`, or `telemetry.too_large` when more than
 * `bytesMax` would come out.
 */
export function decompressUpload(
  body: Uint8Array,
  encoding: string | undefined,
  bytesMax: number = uploadBytesMax,
): Uint8Array {
  const known = encodingOf(encoding);
  try {
    return decompressAtOnce(body, known, bytesMax);
  } catch (error) {
    throw faultOf(error, bytesMax);
  }
}

/**
 * As `decompressUpload`, beside other work: what is small is decompressed at once, everything else in pieces on a
 * thread of the pool, which end where more than `bytesMax` has come out. `onLarge` is awaited before the latter.
 */
export async function decompressInPieces(
  body: Uint8Array,
  encoding: string | undefined,
  bytesMax: number,
  onLarge: () => Promise<void>,
): Promise<Uint8Array> {
  const known = encodingOf(encoding);
  try {
    if (known === 'identity') return decompressAtOnce(body, known, bytesMax);
    if (body.byteLength <= bodyAtOnceBytes) {
      const bytes = tryAtOnce(body, known, Math.min(outputAtOnceBytes, bytesMax));
      if (bytes) return bytes;
    }
    await onLarge();
    const options = { chunkSize: chunkBytes };
    const stream = known === 'gzip' ? createGunzip(options) : createZstdDecompress({ ...options, params });
    stream.end(body);
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > bytesMax) throw tooLarge(bytesMax);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    throw faultOf(error, bytesMax);
  }
}

/** Null where more comes out than may be decompressed at once. */
function tryAtOnce(body: Uint8Array, encoding: UploadEncoding, bytesMax: number): Uint8Array | null {
  try {
    return decompressAtOnce(body, encoding, bytesMax);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return null;
    throw error;
  }
}

function decompressAtOnce(body: Uint8Array, encoding: UploadEncoding, bytesMax: number): Uint8Array {
  const limit = { maxOutputLength: bytesMax };
  if (encoding === 'zstd') return zstdDecompressSync(body, { ...limit, params });
  if (encoding === 'gzip') return gunzipSync(body, limit);
  if (body.byteLength > bytesMax) throw tooLarge(bytesMax);
  return body;
}

function encodingOf(encoding: string | undefined): UploadEncoding {
  const name = encoding?.trim().toLowerCase() || 'identity';
  const known = uploadEncodings.find((one) => one === name);
  if (known) return known;
  throw new CodedError('telemetry.encoding_unsupported', 'Content-Encoding must be zstd, gzip or identity.');
}

function faultOf(error: unknown, bytesMax: number): CodedError {
  if (error instanceof CodedError) return error;
  if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return tooLarge(bytesMax);
  return malformed(`the body can't be decompressed: ${describeError(error)}`);
}

function tooLarge(bytesMax: number): CodedError {
  return new CodedError(
    'telemetry.too_large',
    `An upload must not hold more than ${bytesMax} bytes before compression.`,
  );
}
