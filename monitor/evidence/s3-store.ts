/** Capture files in a bucket of any S3-compatible store. The client's library is loaded with the first call. */
import type { S3Client } from '@aws-sdk/client-s3';
import type { CodedError } from '#common/errors/index.ts';
import { full, type ObjectStore, unavailable } from './object-store.ts';

export interface S3Settings {
  /** Null: Amazon's own address of the region. */
  endpoint: string | null;
  bucket: string;
  region: string;
  /** Null: as the environment of the machine says, such as an instance's role. */
  accessKeyId: string | null;
  secretAccessKey: string | null;
}

const connectTimeoutMs = 3000;
const requestTimeoutMs = 20_000;
const attemptsMax = 2;

export function createS3Store(settings: S3Settings): ObjectStore {
  const { bucket: Bucket, endpoint } = settings;
  const place = `the bucket ${Bucket} at ${endpoint ?? `Amazon S3, ${settings.region}`}`;
  let connected: Promise<{ sdk: typeof import('@aws-sdk/client-s3'); client: S3Client }> | null = null;
  const connect = () => {
    connected ??= import('@aws-sdk/client-s3').then((sdk) => ({ sdk, client: createClient(sdk, settings) }));
    return connected;
  };
  const guarded = async <T>(
    work: (sdk: typeof import('@aws-sdk/client-s3'), client: S3Client) => Promise<T>,
  ): Promise<T> => {
    try {
      const { sdk, client } = await connect();
      return await work(sdk, client);
    } catch (error) {
      throw faultOf(place, error);
    }
  };
  return {
    place,
    put: (Key, Body) =>
      guarded(async ({ PutObjectCommand }, client) => {
        await client.send(
          new PutObjectCommand({
            Bucket,
            Key,
            Body,
            ContentType: 'application/zstd',
            ContentLength: Body.length,
          }),
        );
      }),
    get: (Key) =>
      guarded(async ({ GetObjectCommand }, client) => {
        try {
          const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
          return Body ? await Body.transformToByteArray() : null;
        } catch (error) {
          if ((error as Error).name === 'NoSuchKey') return null;
          throw error;
        }
      }),
    remove: (Key) =>
      guarded(async ({ DeleteObjectCommand }, client) => {
        await client.send(new DeleteObjectCommand({ Bucket, Key }));
      }),
    check: () =>
      guarded(async ({ HeadBucketCommand }, client) => {
        await client.send(new HeadBucketCommand({ Bucket }));
      }),
  };
}

function createClient(sdk: typeof import('@aws-sdk/client-s3'), settings: S3Settings): S3Client {
  const { endpoint, region, accessKeyId, secretAccessKey } = settings;
  return new sdk.S3Client({
    region,
    ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
    ...(accessKeyId === null || secretAccessKey === null
      ? {}
      : { credentials: { accessKeyId, secretAccessKey } }),
    maxAttempts: attemptsMax,
    // Other stores than Amazon's know no checksums in trailers.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: connectTimeoutMs, requestTimeout: requestTimeoutMs },
  });
}

/** Only the error's name and status: its message may name keys. */
function faultOf(place: string, error: unknown): CodedError {
  const { name, code, $metadata } = error as Error & {
    code?: string;
    $metadata?: { httpStatusCode?: number };
  };
  const status = $metadata?.httpStatusCode;
  if (status === 507 || /^(QuotaExceeded|XMinioStorageFull|InsufficientStorage)$/.test(name))
    return full(place);
  return unavailable(place, [code ?? name, ...(status ? [`status ${status}`] : [])].join(', '), error);
}
