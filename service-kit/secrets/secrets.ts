import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type AuditActor, record } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { keyIdOf, openBytes, placeText, sealBytes } from './envelope.ts';
import type { KeyWrapper } from './key-wrapper.ts';
import { createKeyring, rewrapKeys } from './keyring.ts';
import { type RotationResult, rotateDataKey } from './rotate-data-key.ts';
import { sealClearValues } from './seal-clear-values.ts';
import type { SecretColumn } from './secret-column.ts';
import * as store from './store.ts';

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
      return db()
        .transaction()
        .execute(async (trx) => {
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
