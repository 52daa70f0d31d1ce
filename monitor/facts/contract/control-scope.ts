/**
 * The transaction of control data that an append belongs to: gaps, captures, marks and the caller's note that an upload is
 * applied. Control data is in PostgreSQL whichever engine stores the facts.
 *
 * The scope is opaque to callers of a fact store. An engine may store facts in its transaction, as PostgreSQL does, or
 * elsewhere before it commits; then a repeat after a rollback finds them by their tokens.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';

declare const opaque: unique symbol;

export interface ControlScope {
  readonly [opaque]: true;
}

const transactions = new WeakMap<ControlScope, Queryable>();

/** The scope of an open transaction; it ends with the transaction. */
export function openScope(trx: Queryable): ControlScope {
  const scope = Object.freeze({}) as ControlScope;
  transactions.set(scope, trx);
  return scope;
}

/** For engines: the transaction behind a scope. */
export function controlTransaction(scope: ControlScope): Queryable {
  const trx = transactions.get(scope);
  if (!trx) throw new Error('This scope was not made by openScope.');
  return trx;
}
