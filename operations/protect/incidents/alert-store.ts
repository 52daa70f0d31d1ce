/** What a customer is told of an incident: the mark on the incident, and the mails that wait to be sent. */
import { sql } from 'kysely';
import { mailableMembers } from '#operations/views/index.ts';
import { isUnclaimed, setClaim } from '#service-kit/outbox/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AlertChannel } from '../settings/index.ts';

export { findDueMail, hasSubscriber } from '#operations/views/index.ts';

/** What the customer was told so far, of the present episode. */
export interface Told {
  episode: number;
  isStartTold: boolean;
  isEndTold: boolean;
  told: AlertChannel[];
}

/** The mark of an incident that the caller has locked. */
export async function readTold(tx: Queryable, incidentId: string): Promise<Told> {
  const { rows } = await sql<Told>`
    select episode, start_told_at is not null as "isStartTold", end_told_at is not null as "isEndTold", told
    from protect_incidents where incident_id = ${incidentId}::uuid`.execute(tx);
  return rows[0]!;
}

/** Notes that the start of this episode is told by these channels, and which of them have a recipient. */
export async function noteStart(
  tx: Queryable,
  incidentId: string,
  episode: number,
  told: readonly AlertChannel[],
  reached: readonly AlertChannel[],
): Promise<void> {
  await sql`
    update protect_incidents set episode = ${episode}, start_told_at = svc_now(), end_told_at = null,
      told = ${[...told]}::text[], alerted_at = case when ${reached.length > 0} then svc_now() else alerted_at end,
      alerted_by = case when ${reached.length > 0} then ${[...reached]}::text[] else alerted_by end
    where incident_id = ${incidentId}::uuid`.execute(tx);
}

export async function noteEnd(tx: Queryable, incidentId: string): Promise<void> {
  await sql`update protect_incidents set end_told_at = svc_now() where incident_id = ${incidentId}::uuid`.execute(
    tx,
  );
}

/** A mail about the start for each member who may be mailed; returns how many. */
export async function queueStartMails(
  tx: Queryable,
  incidentId: string,
  episode: number,
  serverId: number,
): Promise<number> {
  const { numAffectedRows } = await sql`
    insert into attack_mails (incident_id, episode, moment, person_id)
    select ${incidentId}::uuid, ${episode}::int, 'started', reader.id from (${mailableMembers(serverId)}) reader
    on conflict do nothing`.execute(tx);
  return Number(numAffectedRows ?? 0n);
}

/** A mail about the end for each reader who was mailed the start. */
export async function queueEndMails(tx: Queryable, incidentId: string, episode: number): Promise<void> {
  await sql`
    insert into attack_mails (incident_id, episode, moment, person_id)
    select incident_id, episode, 'ended', person_id from attack_mails
    where incident_id = ${incidentId}::uuid and episode = ${episode} and moment = 'started'
    on conflict do nothing`.execute(tx);
}

/** A mail that one worker sends. */
export interface ClaimedMail {
  id: number;
  term: number;
}

/** Claims the mail that is due longest; the mail about an end waits for that about the start. */
export async function claimMail(db: Queryable, claimSeconds: number): Promise<ClaimedMail | null> {
  const { rows } = await sql<ClaimedMail>`
    with due as (
      select m.id from attack_mails m
      where m.status = 'pending' and m.next_attempt_at <= svc_now() and ${isUnclaimed('m')}
        and not exists (select 1 from attack_mails before where before.incident_id = m.incident_id
          and before.person_id = m.person_id and before.status = 'pending' and before.id < m.id)
      order by m.next_attempt_at, m.id limit 1 for update of m skip locked)
    update attack_mails m set ${setClaim(claimSeconds)} from due where m.id = due.id
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
  outcome: MailOutcome,
): Promise<boolean> {
  const { status, error, retrySeconds } = outcome;
  const { rows } = await sql`
    update attack_mails set status = ${status}, attempts = attempts + 1, last_error = ${error},
      next_attempt_at = svc_now() + make_interval(secs => ${retrySeconds}::float8),
      finished_at = case when ${status !== 'pending'} then svc_now() end
    where id = ${mail.id} and term = ${mail.term} and status = 'pending' returning 1`.execute(db);
  return rows.length === 1;
}
