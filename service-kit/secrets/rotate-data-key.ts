/**
 * Gives a database a new data key and seals every secret with it.
 *
 * Rows are sealed anew in steps of their own, beside running processes: rows written meanwhile are sealed with the
 * new key. A run that is killed leaves both keys, and the next run goes on. The former keys are deleted only after no
 * row needs them, while transactions that chose one of them are waited for.
 */
import { CodedError, hasCode } from '#common/errors/index.ts';
import { type AuditActor, record } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { headerOf } from './envelope.ts';
import type { Keyring } from './keyring.ts';
import type { SecretColumn } from './secret-column.ts';
import type { Secrets } from './secrets.ts';
import * as store from './store.ts';

export interface RotationResult {
  keyId: number;
  sealed: number;
  deletedKeys: number;
}

interface RotationDeps {
  db: () => Queryable;
  columns: readonly SecretColumn[];
  keyring: Keyring;
  seal: Secrets['seal'];
  open: Secrets['open'];
  actor: AuditActor;
}

const batchRows = 100;

/** Throws `secrets.refused` at the end when rows did not open; the keys that they may need are kept then. */
export async function rotateDataKey(deps: RotationDeps): Promise<RotationResult> {
  const { db, keyring, actor } = deps;
  const keyId = await db()
    .transaction()
    .execute(async (trx) => {
      const id = await keyring.add(trx);
      const subject = { kind: 'secrets', id: 'data_keys' };
      await record(trx, actor, { operation: 'secrets.rotate_key', subject, after: { keyId: id } });
      return id;
    });
  let sealed = 0;
  for (;;) {
    for (const column of deps.columns) sealed += await sealColumn(deps, column, keyId);
    const deletedKeys = await deleteFormer(deps, keyId);
    if (deletedKeys !== null) return { keyId, sealed, deletedKeys };
  }
}

async function sealColumn(deps: RotationDeps, column: SecretColumn, keyId: number): Promise<number> {
  let count = 0;
  let afterRow = -1;
  const refused: number[] = [];
  for (;;) {
    const rows = await store.listSealedBefore(deps.db(), column, headerOf(keyId), afterRow, batchRows);
    if (rows.length === 0) break;
    for (const { row, sealed } of rows) {
      afterRow = row;
      try {
        if (await sealRow(deps, column, row, sealed)) count += 1;
      } catch (error) {
        if (!hasCode(error, 'secrets.refused')) throw error;
        refused.push(row);
      }
    }
  }
  if (refused.length > 0)
    throw new CodedError(
      'secrets.refused',
      `Secrets in ${column.table} do not open and were left as they are, with the keys of before: rows ${refused.slice(0, 20).join(', ')}. Set them anew or delete them, then rotate again.`,
    );
  return count;
}

async function sealRow(
  { db, seal, open }: RotationDeps,
  column: SecretColumn,
  row: number,
  sealed: Buffer,
): Promise<boolean> {
  const secret = await open(db(), column, row, sealed);
  return db()
    .transaction()
    .execute(async (trx) =>
      store.replaceSealed(trx, column, row, sealed, await seal(trx, column, row, secret)),
    );
}

/** The number of keys that are gone; null where a row was sealed with one of them in the meantime. */
async function deleteFormer({ db, columns }: RotationDeps, keyId: number): Promise<number | null> {
  return db()
    .transaction()
    .execute(async (trx) => {
      await store.holdKeysBefore(trx, keyId);
      for (const column of columns) {
        if ((await store.listSealedBefore(trx, column, headerOf(keyId), -1, 1)).length > 0) return null;
      }
      return store.deleteKeysBefore(trx, keyId);
    });
}
