/** Mails about newly open ports that wait to be sent. */
import { sql } from 'kysely';
import { mailableMembers } from '#operations/views/index.ts';
import { isUnclaimed, setClaim } from '#service-kit/outbox/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export { findDuePortMail } from '#operations/views/index.ts';

/** A mail about a scan for each member who may be mailed. */
export async function queueMails(tx: Queryable, scanId: string, serverId: number): Promise<void> {
  await sql`
    insert into port_mails (scan_id, person_id)
    select ${scanId}::uuid, reader.id from (${mailableMembers(serverId)}) reader
    on conflict do nothing`.execute(tx);
}

/** A mail that one worker sends. */
export interface ClaimedMail {
  id: number;
  term: number;
}

/** Claims the mail that is due longest. */
export async function claimMail(db: Queryable, claimSeconds: number): Promise<ClaimedMail | null> {
  const { rows } = await sql<ClaimedMail>`
    with due as (
      select m.id from port_mails m
      where m.status = 'pending' and m.next_attempt_at <= svc_now() and ${isUnclaimed('m')}
      order by m.next_attempt_at, m.id limit 1 for update of m skip locked)
    update port_mails m set ${setClaim(claimSeconds)} from due where m.id = due.id
    returning m.id, m.term`.execute(db);
  return rows[0] ?? null;
}

export interface MailOutcome {
  status: 'pending' | 'sent' | 'failed' | 'cancelled';
  error: string | null;
  /** Of the next attempt. */
  retrySeconds: number;
}

/** Records an attempt; false when another worker has the mail by now. */
export async function recordAttempt(
  db: Queryable,
  mail: ClaimedMail,
  { status, error, retrySeconds }: MailOutcome,
): Promise<boolean> {
  const { rows } = await sql`
    update port_mails set status = ${status}, attempts = attempts + 1, last_error = ${error},
      next_attempt_at = svc_now() + make_interval(secs => ${retrySeconds}::float8),
      finished_at = case when ${status !== 'pending'} then svc_now() end
    where id = ${mail.id} and term = ${mail.term} and status = 'pending' returning 1`.execute(db);
  return rows.length === 1;
}
