/** What secrets offer to the rest of a program. */
import type { Part } from '#common/lifecycle/index.ts';
import type { AuditActor } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { KeyWrapper } from './key-wrapper.ts';
import type { SecretColumn } from './secret-column.ts';

export interface RotationResult {
  keyId: number;
  sealed: number;
  deletedKeys: number;
}

export interface Secrets {
  /** Started after the database: loads the keys, seals every clear value of before, or says what is wrong with the key. */
  readonly part: Part;
  /** Loads the keys where that has not been done; call it before reading sealed rows. */
  ready(): Promise<void>;
  /** Sealed bytes for this row, to be written in this transaction. Call `ready` before the transaction begins. */
  seal(trx: Queryable, column: SecretColumn, row: number, secret: Buffer | string): Promise<Buffer>;
  /** Throws `secrets.refused` for bytes that were changed or belong to another row. In a transaction give that one. */
  open(db: Queryable, column: SecretColumn, row: number, sealed: Buffer | null): Promise<Buffer>;
  /** A new data key; seals every row with it, also while other processes run, and deletes the former ones. */
  rotate(actor: AuditActor): Promise<RotationResult>;
  /** Wraps the data keys with another key; gives their number. This process goes on with the former setting. */
  rewrap(actor: AuditActor, to: KeyWrapper): Promise<number>;
}
