/** Opens the token and the signing secret for use, and seals new ones; compares in code, in constant time. */
import { timingSafeEqual } from 'node:crypto';
import { hasCode } from '#common/errors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecretColumn, Secrets } from '#service-kit/secrets/index.ts';
import * as store from './store.ts';

export interface OpenedConnection extends store.StoredConnection {
  token: string;
}

/** Throws `secrets.refused` when the stored token can not be decrypted. */
export async function openConnection(db: Queryable, secrets: Secrets): Promise<OpenedConnection | null> {
  await secrets.ready();
  const stored = await store.readConnection(db);
  if (!stored) return null;
  const token = await secrets.open(db, store.connectionToken, store.onlyRow, stored.sealedToken);
  return { ...stored, token: token.toString() };
}

export interface ConnectionValues {
  baseUrl: string;
  token: string;
  isEnabled: boolean;
  isSyncAutomatic: boolean;
}

/** Returns the previous row, and whether the token changed. Call `ready` before the transaction. */
export async function writeConnection(
  trx: Queryable,
  secrets: Secrets,
  values: ConnectionValues,
): Promise<{ before: store.StoredConnection | null; isNewToken: boolean }> {
  await store.lockConnection(trx);
  const before = await store.readConnection(trx);
  const { token, ...rest } = values;
  const isNewToken = !(await isSame(trx, secrets, store.connectionToken, before?.sealedToken ?? null, token));
  const sealedToken = await secrets.seal(trx, store.connectionToken, store.onlyRow, token);
  const isSameTarget = !isNewToken && before?.baseUrl === values.baseUrl;
  await store.writeConnection(trx, { ...rest, sealedToken, isSameTarget });
  return { before, isNewToken };
}

/** Writing the same secret again changes nothing. Call `ready` before the transaction. */
export async function writeNoticeSecret(trx: Queryable, secrets: Secrets, secret: string): Promise<void> {
  await store.lockConnection(trx);
  const before = await store.readNoticeSecret(trx);
  if (await isSame(trx, secrets, store.noticeSecret, before?.sealed ?? null, secret)) return;
  await store.writeNoticeSecret(trx, await secrets.seal(trx, store.noticeSecret, store.onlyRow, secret));
}

async function isSame(
  trx: Queryable,
  secrets: Secrets,
  column: SecretColumn,
  sealed: Buffer | null,
  secret: string,
): Promise<boolean> {
  if (sealed === null) return false;
  try {
    const stored = await secrets.open(trx, column, store.onlyRow, sealed);
    const given = Buffer.from(secret);
    return stored.length === given.length && timingSafeEqual(stored, given);
  } catch (error) {
    // A secret that can not be decrypted is replaced by writing a new one.
    if (hasCode(error, 'secrets.refused')) return false;
    throw error;
  }
}
