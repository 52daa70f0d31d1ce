/** What a customer is told of an incident: the mark on the incident, and the mails that wait to be sent. */
import { sql } from 'kysely';
import { mailableMembers } from '#operations/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AlertChannel } from '../settings/index.ts';

export { hasSubscriber } from '#operations/views/index.ts';

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
