/** The data keys of a database, unwrapped once for each process and kept in its memory. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { keyBytes, placeText } from './envelope.ts';
import type { KeyWrapper } from './key-wrapper.ts';
import type { SecretColumn } from './store.ts';
import * as store from './store.ts';

export type Keyring = ReturnType<typeof createKeyring>;

export function createKeyring(deps: {
  db: () => Queryable;
  /** Which program's database this is: a key of one program is never taken for one of the other. */
  program: string;
  wrapper: KeyWrapper;
  columns: readonly SecretColumn[];
}) {
  const keys = new Map<number, Buffer>();
  const contextOf = (id: number) => placeText('svc data key', deps.program, id);

  const read = async (db = deps.db()) => {
    const stored = await store.readKeys(db);
    for (const one of stored)
      if (!keys.has(one.id)) keys.set(one.id, await unwrap(one, deps.wrapper, contextOf(one.id)));
    return stored.length;
  };
  /** A new key, wrapped and written; it seals as soon as the transaction has committed. Throws `secrets.wrong_key`. */
  const add = async (trx: Queryable) => {
    await store.lockKeys(trx);
    // All keys were perhaps wrapped anew while this process ran: then its wrapping key is no longer the right one.
    const newest = (await store.readKeys(trx)).at(-1);
    if (newest) await unwrap(newest, deps.wrapper, contextOf(newest.id));
    const key = randomBytes(keyBytes);
    const id = await store.nextKeyId(trx);
    const wrapped = await deps.wrapper.wrap(key, contextOf(id));
    await store.insertKey(trx, { id, ...wrapped, checkValue: checkValueOf(key) });
    return id;
  };
  const addFirst = async (trx: Queryable) => {
    await store.lockKeys(trx);
    if ((await store.readKeys(trx)).length > 0) return;
    for (const column of deps.columns) {
      if (await store.hasSealed(trx, column))
        throw new CodedError(
          'secrets.no_key',
          `The table data_keys is empty, but ${column.table} holds sealed secrets. Restore data_keys from a backup; docs/operating/secrets-key.md says what to do without one. Nothing was changed.`,
        );
    }
    await deps.wrapper.prepare();
    await add(trx);
  };
  return {
    /** Reads all keys; makes the first one in a database without any secret. */
    async load() {
      if ((await read()) > 0) return;
      await inTransaction(deps.db(), addFirst);
      await read();
    },
    /** The key of this id, read now where it is newer than this process; throws `secrets.no_key`. */
    async get(db: Queryable, id: number): Promise<Buffer> {
      if (!keys.has(id)) await read(db);
      const key = keys.get(id);
      if (key === undefined)
        throw new CodedError(
          'secrets.no_key',
          `The data key ${id} is not in the table data_keys. Restore it from a backup.`,
        );
      return key;
    },
    add,
  };
}

/** Wraps every data key with another wrapping key, in one transaction. Gives the number of keys. */
export async function rewrapKeys(
  trx: Queryable,
  { program, from, to }: { program: string; from: KeyWrapper; to: KeyWrapper },
): Promise<number> {
  await store.lockKeys(trx);
  const stored = await store.readKeys(trx);
  // Unwrapped before the new key is made: with a wrong old one nothing is left behind.
  const opened: { id: number; key: Buffer }[] = [];
  for (const one of stored) {
    const key = await unwrap(one, from, placeText('svc data key', program, one.id));
    opened.push({ id: one.id, key });
  }
  await to.prepare();
  for (const { id, key } of opened) {
    const context = placeText('svc data key', program, id);
    const wrapped = await to.wrap(key, context);
    // Read back before the former wrapping is given up.
    if (!(await to.unwrap(wrapped, context)).equals(key)) throw wrongKey(to);
    await store.rewrapKey(trx, id, wrapped);
  }
  return opened.length;
}

async function unwrap(stored: store.StoredKey, wrapper: KeyWrapper, context: string): Promise<Buffer> {
  const key = await wrapper.unwrap(stored, context);
  if (!timingSafeEqual(checkValueOf(key), stored.checkValue)) throw wrongKey(wrapper);
  return key;
}

function checkValueOf(key: Buffer): Buffer {
  return createHmac('sha256', key).update('svc data key').digest();
}

function wrongKey(wrapper: KeyWrapper): CodedError {
  return new CodedError(
    'secrets.wrong_key',
    `What ${wrapper.place} unwrapped is not the key of this database's secrets. Put the right one back. Nothing was changed.`,
  );
}
