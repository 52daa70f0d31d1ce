import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { record } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { keyIdOf, openBytes, placeText, sealBytes } from './envelope.ts';
import type { KeyWrapper } from './key-wrapper.ts';
import { createKeyring, rewrapKeys } from './keyring.ts';
import { rotateDataKey } from './rotate-data-key.ts';
import { sealClearValues } from './seal-clear-values.ts';
import type { SecretColumn } from './secret-column.ts';
import type { Secrets } from './secrets-service.ts';
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

export function createSecrets(deps: SecretsDeps): Secrets {
  const { db, program, wrapper, columns, reporter } = deps;
  const keyring = createKeyring(deps);
  let loaded: Promise<void> | null = null;

  const prepare = async (waits: boolean) => {
    await keyring.load();
    await sealClearValues({ db, columns, seal, reporter }, waits);
  };
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
  const seal: Secrets['seal'] = async (trx, column, row, secret) => {
    if (!trx.isTransaction) throw new TypeError('a secret is sealed in the transaction that writes it');
    // After a rotation that deleted the key which this waited for, a second look sees the new one.
    const id = (await store.holdNewestKey(trx)) ?? (await store.holdNewestKey(trx));
    if (id === null) throw new CodedError('secrets.no_key', 'There is no data key to seal with. Try again.');
    return sealBytes(await keyring.get(trx, id), id, placeOf(column, row), Buffer.from(secret));
  };
  const open: Secrets['open'] = async (from, column, row, sealed) => {
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
    async rotate(actor) {
      await ready();
      return rotateDataKey({ db, columns, keyring, seal, open, actor });
    },
    async rewrap(actor, to) {
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
