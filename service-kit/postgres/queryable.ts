import { type Kysely, sql } from 'kysely';

/** Rows are typed where they are read (`sql<Row>`), so the schema parameter stays open. */
// biome-ignore lint/suspicious/noExplicitAny: kysely's way to say "any table".
export type Queryable = Kysely<any>;

/** The database's clock, to which every stored moment belongs; tests can move it. */
export async function readNowMs(db: Queryable): Promise<number> {
  const { rows } = await sql<{ now: Date }>`select svc_now() as now`.execute(db);
  return rows[0]!.now.getTime();
}

/** Runs `work` in the transaction that `db` is already, or in a new one. */
export function inTransaction<T>(db: Queryable, work: (trx: Queryable) => Promise<T>): Promise<T> {
  return db.isTransaction ? work(db) : db.transaction().execute(work);
}

const camelNames = new Map<string, string>();

/** `tenantId` of `tenant_id`; a name without an underscore stays. */
export function camelName(column: string): string {
  let name = camelNames.get(column);
  if (name === undefined) {
    name = column.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    camelNames.set(column, name);
  }
  return name;
}

/** What went wrong at the database, told apart by what the caller can do about it. */

const networkCodes = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND']);

/** True when the server could not be asked at all: it is down, restarting, or out of connections. */
export function isConnectionFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') {
    // 08: connection exception, 57P: operator intervention, 53: insufficient resources.
    if (/^(08|57P|53)/.test(code) || networkCodes.has(code)) return true;
  }
  return /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error/.test(
    error.message,
  );
}

/** True for a violated unique constraint, of this name when one is given. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const fault = error as { code?: unknown; constraint?: unknown } | null;
  return fault?.code === '23505' && (constraint === undefined || fault.constraint === constraint);
}

/** Whether a statement gave up because another transaction holds a lock: the same statement may succeed later. */
export function isLockTimeout(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === '55P03' || code === '40P01';
}

/** Whether a prepared statement can't run because a type in its answer has changed since. */
export function isStalePlan(error: unknown): boolean {
  const fault = error as { code?: unknown; message?: unknown } | null;
  return fault?.code === '0A000' && /^cached plan must not change/.test(String(fault.message));
}
