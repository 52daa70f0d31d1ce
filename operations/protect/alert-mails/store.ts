/** Claims of queued mails and their attempts, in the table of each kind. */
import { type RawBuilder, sql } from 'kysely';
import { type Claim, isUnclaimed, setClaim } from '#service-kit/outbox/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A mail that one worker sends. */
export type ClaimedMail = Claim;

/** Columns of a reader and a subject: of each, an older mail goes before a newer one. */
export type MailOrder = readonly string[];

/** Claims the mail that is due longest. */
export async function claimMail(
  db: Queryable,
  { table, order, claimSeconds }: { table: string; order?: MailOrder | undefined; claimSeconds: number },
): Promise<ClaimedMail | null> {
  const { rows } = await sql<ClaimedMail>`
    with due as (
      select m.id from ${sql.table(table)} m
      where m.status = 'pending' and m.next_attempt_at <= svc_now() and ${isUnclaimed('m')}
        and ${order ? isFirst(table, order) : sql`true`}
      order by m.next_attempt_at, m.id limit 1 for update of m skip locked)
    update ${sql.table(table)} m set ${setClaim(claimSeconds)} from due where m.id = due.id
    returning m.id, m.term`.execute(db);
  return rows[0] ?? null;
}

function isFirst(table: string, order: MailOrder): RawBuilder<boolean> {
  const same = order.map((column) => sql`before.${sql.ref(column)} = m.${sql.ref(column)}`);
  return sql<boolean>`not exists (select 1 from ${sql.table(table)} before
    where ${sql.join(same, sql` and `)} and before.status = 'pending' and before.id < m.id)`;
}

export interface MailOutcome {
  status: 'pending' | 'sent' | 'failed' | 'cancelled';
  error: string | null;
  /** Until the next attempt. */
  retrySeconds: number;
}

/** Records an attempt; false when another worker has the mail by now. */
export async function recordAttempt(
  db: Queryable,
  table: string,
  mail: ClaimedMail,
  { status, error, retrySeconds }: MailOutcome,
): Promise<boolean> {
  const { rows } = await sql`
    update ${sql.table(table)} set status = ${status}, attempts = attempts + 1, last_error = ${error},
      next_attempt_at = svc_now() + make_interval(secs => ${retrySeconds}::float8),
      finished_at = case when ${status !== 'pending'} then svc_now() end
    where id = ${mail.id} and term = ${mail.term} and status = 'pending' returning 1`.execute(db);
  return rows.length === 1;
}
