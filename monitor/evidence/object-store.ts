import { randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { access, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { S3Client } from '@aws-sdk/client-s3';
import type { SettingValues } from '#common/config/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { makeFolders } from '#common/folders/index.ts';
import { requirePrivateTransport } from '#common/transport/index.ts';
import type { evidenceSettings } from './settings.ts';

/**
 * Every call that fails throws `evidence.store_unavailable` or `evidence.store_full`, whose messages have no secrets.
 * A repeated `put` or `remove` does the same again.
 */
export interface ObjectStore {
  /** For people, such as `the bucket evidence at https://s3.example.com`. */
  readonly place: string;
  /** Resolves when the object is durable. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Null where there is no such object. */
  get(key: string): Promise<Uint8Array | null>;
  /** Also resolves where there is no such object. */
  remove(key: string): Promise<void>;
  /** Throws when objects can't be stored now. */
  check(): Promise<void>;
}

export function unavailable(place: string, why: string, cause?: unknown): CodedError {
  return new CodedError(
    'evidence.store_unavailable',
    `The store of capture files (${place}) does not work: ${why}.`,
    {},
    cause,
  );
}

function full(place: string): CodedError {
  return new CodedError(
    'evidence.store_full',
    `The store of capture files (${place}) is full. Make room there; sensors send their files again.`,
  );
}

// Capture files in a folder: written beside, synced, then renamed, so that a file is whole or absent.

const isAbsent = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT';

export function createFolderStore(folder: string): ObjectStore {
  const place = `the folder ${folder}`;
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      const { code = 'unknown error' } = error as NodeJS.ErrnoException;
      throw code === 'ENOSPC' || code === 'EDQUOT' ? full(place) : unavailable(place, code, error);
    }
  };
  return {
    place,
    put: (key, bytes) =>
      guarded(async () => {
        const path = join(folder, key);
        makeFolders(dirname(path), 0o700);
        const beside = `${path}.${randomUUID()}.part`;
        try {
          await writeSynced(beside, bytes);
          await rename(beside, path);
          await syncFolder(dirname(path));
        } catch (error) {
          await rm(beside, { force: true }).catch(() => {});
          throw error;
        }
      }),
    get: (key) =>
      guarded(async () => {
        try {
          return await readFile(join(folder, key));
        } catch (error) {
          if (isAbsent(error)) return null;
          throw error;
        }
      }),
    remove: (key) =>
      guarded(async () => {
        const path = join(folder, key);
        // A folder that is gone is a disk that is not mounted, and no proof that the file is gone.
        await access(folder);
        const names = await readdir(dirname(path)).catch((error) => {
          if (isAbsent(error)) return [];
          throw error;
        });
        const own = names.filter((name) => name === basename(path) || name.startsWith(`${basename(path)}.`));
        for (const name of own) await rm(join(dirname(path), name), { force: true });
        if (own.length > 0) await syncFolder(dirname(path));
      }),
    check: () =>
      guarded(async () => {
        // The first file makes the folder.
        if (existsSync(folder)) await access(folder, constants.W_OK | constants.X_OK);
      }),
  };
}

async function writeSynced(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

// Capture files in a bucket of any S3-compatible store. The client's library is loaded with the first call.

interface S3Settings {
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

type EvidenceConfig = SettingValues<typeof evidenceSettings> & {
  programDir: string;
  allowInsecureHttp: boolean;
};

/** The store that the settings name. Throws `config.invalid` where they contradict one another. */
export function chooseStore(config: EvidenceConfig): ObjectStore {
  const { evidenceBucket: bucket, evidenceEndpoint: endpoint, evidenceRegion: region } = config;
  const { evidenceKeyId: accessKeyId, evidenceKey: secretAccessKey } = config;
  if (bucket === null) {
    if (endpoint !== null || accessKeyId !== null || secretAccessKey !== null)
      throw new CodedError('config.invalid', 'SVC_MONITOR_EVIDENCE_S3_BUCKET must name the bucket.');
    return createFolderStore(resolve(config.evidenceFolder ?? join(config.programDir, 'evidence')));
  }
  if (config.evidenceFolder !== null)
    throw new CodedError(
      'config.invalid',
      'Set either SVC_MONITOR_EVIDENCE_FOLDER or SVC_MONITOR_EVIDENCE_S3_BUCKET, not both.',
    );
  if ((accessKeyId === null) !== (secretAccessKey === null))
    throw new CodedError(
      'config.invalid',
      'Set both SVC_MONITOR_EVIDENCE_S3_ACCESS_KEY_ID and SVC_MONITOR_EVIDENCE_S3_SECRET_ACCESS_KEY, or neither.',
    );
  if (endpoint !== null)
    requirePrivateTransport(endpoint, {
      isAllowed: config.allowInsecureHttp,
      advice: 'Use https in SVC_MONITOR_EVIDENCE_S3_ENDPOINT.',
    });
  return createS3Store({ endpoint, bucket, region, accessKeyId, secretAccessKey });
}
