/** Notifications: written with the transition, delivered by the process that claims their channel. */
import { sql } from 'kysely';
import { isUnclaimed, setClaim } from '#service-kit/outbox/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** One for each enabled channel, unless the subject is muted. */
export async function enqueueOpened(trx: Queryable, episodeId: number): Promise<void> {
  await sql`
    insert into alert_notifications (episode_id, transition, channel_id)
    select e.id, 'opened', c.id from alert_episodes e cross join alert_channels c
    where e.id = ${episodeId} and c.is_enabled and not exists (
      select 1 from alert_mutes m where m.kind = e.kind and m.subject_key = e.subject_key and m.until > svc_now())
    on conflict do nothing`.execute(trx);
}

/** "Resolved" goes only to channels that received "opened". */
export async function enqueueResolved(trx: Queryable, episodeId: number): Promise<void> {
  await sql`
    insert into alert_notifications (episode_id, transition, channel_id)
    select n.episode_id, 'resolved', n.channel_id from alert_notifications n join alert_channels c on c.id = n.channel_id
    where n.episode_id = ${episodeId} and n.transition = 'opened' and c.is_enabled
    on conflict do nothing`.execute(trx);
}

/** Number of tests of the channel in this time. Its row is locked, so that concurrent requests are counted too. */
export async function lockAndCountTests(trx: Queryable, channelId: number, seconds: number): Promise<number> {
  await sql`select 1 from alert_channels where id = ${channelId} for no key update`.execute(trx);
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from alert_notifications where channel_id = ${channelId} and transition = 'test'
      and created_at > svc_now() - make_interval(secs => ${seconds})`.execute(trx);
  return rows[0]!.count;
}

export async function enqueueTest(db: Queryable, channelId: number): Promise<boolean> {
  const { rows } = await sql`
    insert into alert_notifications (transition, channel_id) select 'test', id from alert_channels where id = ${channelId}
    returning 1`.execute(db);
  return rows.length === 1;
}

export interface ClaimedChannel {
  id: number;
  term: number;
  kind: 'email' | 'webhook';
  name: string;
  recipients: string[];
  url: string | null;
  sealedSecret: Buffer | null;
}

/**
 * Claims the channel with the longest overdue notification. One worker serves a channel at a time, so that "opened"
 * comes before "resolved", and a slow receiver does not delay other channels.
 */
export async function claimChannel(db: Queryable, claimSeconds: number): Promise<ClaimedChannel | null> {
  const { rows } = await sql<ClaimedChannel>`
    with due as (
      select c.id from alert_notifications n join alert_channels c on c.id = n.channel_id
      where n.status = 'pending' and n.next_attempt_at <= svc_now()
        and ${isUnclaimed('c')}
        and n.id = (select min(first.id) from alert_notifications first where first.channel_id = c.id and first.status = 'pending')
      order by n.next_attempt_at, n.id limit 1 for update of c skip locked)
    update alert_channels c set ${setClaim(claimSeconds)}
    from due where c.id = due.id
    returning c.id, c.term, c.kind, c.name, c.recipients, c.url, c.sealed_secret as "sealedSecret"`.execute(
    db,
  );
  return rows[0] ?? null;
}

export interface DueNotification {
  id: number;
  /** The same in every attempt. */
  publicId: string;
  episodeId: number | null;
  transition: 'opened' | 'resolved' | 'test';
  attempts: number;
  createdAtMs: number;
  nowMs: number;
}

/** The channel's oldest notification if it is due; a later one is never sent first. */
export async function nextNotification(db: Queryable, channelId: number): Promise<DueNotification | null> {
  const { rows } = await sql<DueNotification & { isDue: boolean }>`
    select id, public_id as "publicId", episode_id as "episodeId", transition, attempts,
      (extract(epoch from created_at) * 1000)::float8 as "createdAtMs",
      (extract(epoch from svc_now()) * 1000)::float8 as "nowMs", next_attempt_at <= svc_now() as "isDue"
    from alert_notifications where channel_id = ${channelId} and status = 'pending' order by id limit 1`.execute(
    db,
  );
  const row = rows[0];
  if (!row?.isDue) return null;
  const { isDue: _, ...notification } = row;
  return notification;
}

/** Records an attempt; `retrySeconds` is null for the last one. Returns false when another worker has the claim. */
export async function recordAttempt(
  db: Queryable,
  channel: Pick<ClaimedChannel, 'id' | 'term'>,
  notificationId: number,
  outcome: { error: string | null; retrySeconds: number | null },
): Promise<boolean> {
  const isDone = outcome.error === null || outcome.retrySeconds === null;
  const status = outcome.error === null ? 'delivered' : isDone ? 'failed' : 'pending';
  const { rows } = await sql`
    with held as (
      update alert_channels set claimed_until = svc_now() + interval '60 seconds',
        consecutive_failures = case when ${outcome.error === null} then 0 else consecutive_failures + 1 end
      where id = ${channel.id} and term = ${channel.term} returning id)
    update alert_notifications n set attempts = attempts + 1, status = ${status}, last_error = ${outcome.error},
      next_attempt_at = svc_now() + make_interval(secs => ${outcome.retrySeconds ?? 0}::float8),
      finished_at = case when ${isDone} then svc_now() end
    from held where n.id = ${notificationId} and n.channel_id = held.id and n.status = 'pending' returning 1`.execute(
    db,
  );
  return rows.length === 1;
}
