/** Where capture files are kept: a folder, or a bucket of an S3-compatible store. */
import { CodedError } from '#common/errors/index.ts';

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

export function full(place: string): CodedError {
  return new CodedError(
    'evidence.store_full',
    `The store of capture files (${place}) is full. Make room there; sensors send their files again.`,
  );
}
