import { systemClock } from '#common/clock/index.ts';
import { CodedError, describeError, hasCode } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type AuditActor, record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { headerOf, keyIdOf, openBytes, placeText, sealBytes } from './envelope.ts';
import type { KeyWrapper } from './key-wrapper.ts';
import { createKeyring, type Keyring, rewrapKeys } from './keyring.ts';
import type { SecretColumn } from './store.ts';
import * as store from './store.ts';

/**
 * Secrets at rest: what a program has to use again (tokens, signing secrets) is sealed in its database.
 *
 * Envelope encryption: a data key in the table `data_keys` seals secrets with AES-256-GCM, bound to table, column and
 * row. The data key is wrapped by a key that is not in the database: of a key file, or of a key management service
 * behind a command. Without that key the program does not start and changes nothing. What only has to be compared
 * (passwords, API keys) is not kept here: a digest is enough.
 */

export { createKeyWrapper, type KeyWrapper } from './key-wrapper.ts';
export type { SecretColumn } from './store.ts';

export interface SecretsDeps {
  db: () => Queryable;
  /** Which program's database this is. */
  program: string;
  wrapper: KeyWrapper;
  /** Every column that is sealed; a column that is not named here can't be. */
  columns: readonly SecretColumn[];
  reporter: Reporter;
}

export type Secrets = ReturnType<typeof createSecrets>;

export function createSecrets(deps: SecretsDeps) {
  const { db, program, wrapper, columns, reporter } = deps;
  const keyring = createKeyring(deps);
  let loaded: Promise<void> | null = null;

  const prepare = async (waits: boolean) => {
    await keyring.load();
    await sealClearValues({ db, columns, seal, reporter }, waits);
  };
  /** Loads the keys where that has not been done; call it before reading sealed rows. */
  const ready = () => {
    // A failure is not kept: the next call looks again.
    loaded ??= prepare(false).catch((error) => {
      loaded = null;
      throw error;
    });
    return loaded;
  };
  const placeOf = (column: SecretColumn, row: number) => {
    if (!columns.includes(column)) throw new TypeError(`${column.table}.${column.sealed} is not declared`);
    return placeText(program, column.table, column.sealed, row);
  };
  /** Sealed bytes for this row, to be written in this transaction. Call `ready` before the transaction begins. */
  const seal = async (
    trx: Queryable,
    column: SecretColumn,
    row: number,
    secret: Buffer | string,
  ): Promise<Buffer> => {
    if (!trx.isTransaction) throw new TypeError('a secret is sealed in the transaction that writes it');
    // After a rotation that deleted the key which this waited for, a second look sees the new one.
    const id = (await store.holdNewestKey(trx)) ?? (await store.holdNewestKey(trx));
    if (id === null) throw new CodedError('secrets.no_key', 'There is no data key to seal with. Try again.');
    return sealBytes(await keyring.get(trx, id), id, placeOf(column, row), Buffer.from(secret));
  };
  /** Throws `secrets.refused` for bytes that were changed or belong to another row. In a transaction give that one. */
  const open = async (
    from: Queryable,
    column: SecretColumn,
    row: number,
    sealed: Buffer | null,
  ): Promise<Buffer> => {
    const id = sealed === null ? null : keyIdOf(sealed);
    const opened =
      id === null ? null : openBytes(await keyring.get(from, id), placeOf(column, row), sealed as Buffer);
    if (opened === null)
      throw new CodedError(
        'secrets.refused',
        `The secret in ${column.table}, row ${row}, does not open: it was changed, or moved from another row. Set it anew.`,
      );
    return opened;
  };
  return {
    /** Started after the database: loads the keys, seals every clear value of before, or says what is wrong with the key. */
    part: {
      name: 'secrets',
      async start() {
        loaded = prepare(true);
        await loaded;
      },
      async stop() {},
    },
    ready,
    seal,
    open,
    /** A new data key; seals every row with it, also while other processes run, and deletes the former ones. */
    async rotate(actor: AuditActor): Promise<RotationResult> {
      await ready();
      return rotateDataKey({ db, columns, keyring, seal, open, actor });
    },
    /** Wraps the data keys with another key; gives their number. This process goes on with the former setting. */
    async rewrap(actor: AuditActor, to: KeyWrapper): Promise<number> {
      await ready();
      return inTransaction(db(), async (trx) => {
        const count = await rewrapKeys(trx, { program, from: wrapper, to });
        const subject = { kind: 'secrets', id: 'data_keys' };
        await record(trx, actor, {
          operation: 'secrets.rewrap_keys',
          subject,
          after: { wrappedBy: to.place },
        });
        return count;
      });
    },
  };
}

// Gives a database a new data key and seals every secret with it.
//
// Rows are sealed anew in steps of their own, beside running processes: rows written meanwhile are sealed with the
// new key. A run that is killed leaves both keys, and the next run goes on. The former keys are deleted only after no
// row needs them, while transactions that chose one of them are waited for.

type RotationResult = Awaited<ReturnType<typeof rotateDataKey>>;

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
async function rotateDataKey(deps: RotationDeps) {
  const { db, keyring, actor } = deps;
  const keyId = await inTransaction(db(), async (trx) => {
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

async function sealRow({ db, seal, open }: RotationDeps, column: SecretColumn, row: number, sealed: Buffer) {
  const secret = await open(db(), column, row, sealed);
  return inTransaction(db(), async (trx) =>
    store.replaceSealed(trx, column, row, sealed, await seal(trx, column, row, secret)),
  );
}

/** The number of keys that are gone; null where a row was sealed with one of them in the meantime. */
async function deleteFormer({ db, columns }: RotationDeps, keyId: number): Promise<number | null> {
  return inTransaction(db(), async (trx) => {
    await store.holdKeysBefore(trx, keyId);
    for (const column of columns) {
      if ((await store.listSealedBefore(trx, column, headerOf(keyId), -1, 1)).length > 0) return null;
    }
    return store.deleteKeysBefore(trx, keyId);
  });
}

// Seals every secret that an earlier version left readable in the database, and has the former values forgotten.

interface SealClearDeps {
  db: () => Queryable;
  columns: readonly SecretColumn[];
  seal: Secrets['seal'];
  reporter: Reporter;
}

/** Rows that other transactions hold are left out unless it `waits`. */
async function sealClearValues(deps: SealClearDeps, waits: boolean): Promise<void> {
  const { db, columns, reporter } = deps;
  const changed = new Map<string, number>();
  for (const column of columns) {
    for (;;) {
      const count = await sealBatch(deps, column, waits);
      if (count > 0) changed.set(column.table, (changed.get(column.table) ?? 0) + count);
      if (count < batchRows) break;
    }
  }
  if (changed.size === 0) return;
  for (const [table, count] of changed)
    reporter.info('secrets sealed that were readable in the database', { table, count });
  try {
    await forgetClearValues(db(), [...changed.keys()]);
  } catch (error) {
    const tables = [...changed.keys(), 'pg_statistic'].join(', ');
    reporter.warn('former clear values may be left in the files of the database', {
      advice: `run for each of ${tables}: vacuum (full, analyze) TABLE`,
      error: describeError(error),
    });
  }
}

/** How many rows it sealed; fewer than a batch when no more are left. */
function sealBatch({ db, seal }: SealClearDeps, column: SecretColumn, waits: boolean): Promise<number> {
  return inTransaction(db(), async (trx) => {
    const rows = await store.lockClear(trx, column, batchRows, waits);
    for (const { row, secret } of rows)
      await store.writeSealed(trx, column, row, await seal(trx, column, row, secret));
    return rows.length;
  });
}

const pauseMs = 100;
const waitMs = 30_000;

/**
 * Removes the clear values of before from the files of these tables and from their statistics. PostgreSQL keeps rows
 * that are gone while an older transaction runs, so those are waited for. Throws `secrets.not_forgotten`.
 */
async function forgetClearValues(db: Queryable, tables: readonly string[]): Promise<void> {
  await waitForOlder(db);
  for (const table of tables) await store.rewriteTable(db, table);
  await waitForOlder(db);
  await store.rewriteStatistics(db);
}

async function waitForOlder(db: Queryable): Promise<void> {
  const mark = await store.readTransactionMark(db);
  for (let waitedMs = 0; !(await store.haveEnded(db, mark)); waitedMs += pauseMs) {
    if (waitedMs >= waitMs)
      throw new CodedError('secrets.not_forgotten', 'older transactions run on this PostgreSQL server');
    await systemClock.wait(pauseMs);
  }
}
