/**
 * PostgreSQL for a server program: any server by URL, or the embedded one in the program's data directory.
 *
 * `createDatabase` is inert until `start()`, which brings the server up, applies the migrations and fails with one
 * clear sentence when it can't. Pools survive a restart of the server; a query that meets it fails and may be retried
 * by a caller that knows that it is safe.
 */

export { asColumns, type Columns, copyRows, copyText, fromColumns, readLines } from './copy.ts';
export { createDatabase, type Database, listMissingMigrations } from './database.ts';
export type { EmbeddedUse } from './database-place.ts';
export { createEmbeddedPostgres, type EmbeddedPostgres } from './embedded.ts';
export { createLookup, createSharing, type Lookup } from './lookup.ts';
export { withCustomPlans } from './prepare.ts';
export {
  inTransaction,
  isConnectionFailure,
  isLockTimeout,
  isUniqueViolation,
  type Queryable,
  readNowMs,
} from './queryable.ts';
export { RowWriter } from './row-writer.ts';
