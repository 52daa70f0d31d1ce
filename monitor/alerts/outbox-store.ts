/** Notifications: written with the transition, delivered by the process that claims their channel. */
import { sql } from 'kysely';
import { isUnclaimed, setClaim } from '#service-kit/outbox/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ChannelSettings } from './channels/index.ts';
import { criticalKinds } from './episode.ts';

/** The end of the quiet hours that channel `c` has now, unless episode `e` is critical; else null. */
const quietUntil = sql<Date | null>`(
  select case when case when c.quiet_from < c.quiet_to then t.minute >= c.quiet_from and t.minute < c.quiet_to
      else t.minute >= c.quiet_from or t.minute < c.quiet_to end
    then (t.midnight + make_interval(mins => c.quiet_to) + case when t.minute >= c.quiet_to then interval '1 day' else interval '0' end)
      at time zone c.quiet_zone end
  from (select date_trunc('day', l.at) as midnight, extract(hour from l.at) * 60 + extract(minute from l.at) as minute
    from (select svc_now() at time zone c.quiet_zone as at) l) t
  where c.quiet_zone is not null and not (e.kind = any(${criticalKinds}::text[])))`;

const isMuted = sql<boolean>`exists (
  select 1 from alert_mutes m where m.kind = e.kind and m.subject_key = e.subject_key and m.until > svc_now())`;

/** One for each enabled channel whose routing matches, unless the subject is muted. */
export async function enqueueOpened(trx: Queryable, episodeId: number): Promise<void> {
  await sql`
    insert into alert_notifications (episode_id, transition, channel_id, held_until)
    select e.id, 'opened', c.id, ${quietUntil} from alert_episodes e cross join alert_channels c
    where e.id = ${episodeId} and c.is_enabled and not ${isMuted}
      and (c.site_ids is null or e.site_id is null or e.site_id = any(c.site_ids))
      and (c.alert_kinds is null or e.kind = any(c.alert_kinds))
      and (not c.is_critical_only or e.kind = any(${criticalKinds}::text[]))
    on conflict do nothing`.execute(trx);
}

/** "Resolved" goes only to channels that receive "opened": what begins and ends within quiet hours is not sent. */
export async function enqueueResolved(trx: Queryable, episodeId: number): Promise<void> {
  await sql`
    with dropped as (
      update alert_notifications set status = 'failed', finished_at = svc_now(), last_error = 'it ended within quiet hours'
      where episode_id = ${episodeId} and transition = 'opened' and status = 'pending' and held_until > svc_now()
      returning channel_id)
    insert into alert_notifications (episode_id, transition, channel_id, held_until)
    select n.episode_id, 'resolved', n.channel_id, ${quietUntil} from alert_notifications n
      join alert_episodes e on e.id = n.episode_id join alert_channels c on c.id = n.channel_id
    where n.episode_id = ${episodeId} and n.transition = 'opened' and c.is_enabled
      and n.channel_id not in (select channel_id from dropped)
    on conflict do nothing`.execute(trx);
}

/** Sends "opened" of open episodes again to channels of this kind, which forget what is not repeated. */
export async function repeatOpened(trx: Queryable, kind: string, seconds: number): Promise<void> {
  await sql`
    update alert_notifications n set status = 'pending', attempts = 0, next_attempt_at = svc_now(), created_at = svc_now(),
      finished_at = null
    from alert_episodes e, alert_channels c
    where e.resolved_at is null and n.episode_id = e.id and n.transition = 'opened' and n.channel_id = c.id
      and c.kind = ${kind} and c.is_enabled and n.finished_at <= svc_now() - make_interval(secs => ${seconds})
        and not ${isMuted}`.execute(trx);
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
  kind: string;
  name: string;
  settings: ChannelSettings;
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
        and n.id = (select min(first.id) from alert_notifications first where first.channel_id = c.id and first.status = 'pending'
          and (first.held_until is null or first.held_until <= svc_now()))
      order by n.next_attempt_at, n.id limit 1 for update of c skip locked)
    update alert_channels c set ${setClaim(claimSeconds)}
    from due where c.id = due.id
    returning c.id, c.term, c.kind, c.name, c.settings, c.sealed_secret`.execute(db);
  return rows[0] ?? null;
}

export interface DueNotification {
  id: number;
  /** The same in every attempt. */
  publicId: string;
  episodeId: number | null;
  transition: 'opened' | 'resolved' | 'test';
  /** Of the channel's "opened" of the episode; of a test, null. */
  openedId: string | null;
  /** How the receiver named that message. */
  opened: string | null;
  attempts: number;
  createdAtMs: number;
  nowMs: number;
}

/** The channel's oldest notification if it is due; a later one is sent first only while quiet hours hold it back. */
export async function nextNotification(db: Queryable, channelId: number): Promise<DueNotification | null> {
  const { rows } = await sql<DueNotification & { isDue: boolean }>`
    select n.id, n.public_id, n.episode_id, n.transition, n.attempts,
      (select o.public_id from alert_notifications o
        where o.episode_id = n.episode_id and o.channel_id = n.channel_id and o.transition = 'opened') as opened_id,
      (select o.reference from alert_notifications o
        where o.episode_id = n.episode_id and o.channel_id = n.channel_id and o.transition = 'opened') as opened,
      (extract(epoch from n.created_at) * 1000)::float8 as created_at_ms,
      (extract(epoch from svc_now()) * 1000)::float8 as now_ms, n.next_attempt_at <= svc_now() as is_due
    from alert_notifications n where n.channel_id = ${channelId} and n.status = 'pending'
      and (n.held_until is null or n.held_until <= svc_now()) order by n.id limit 1`.execute(db);
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
  outcome: { error: string | null; retrySeconds: number | null; reference?: string | undefined },
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
      reference = coalesce(reference, ${outcome.reference ?? null}),
      finished_at = case when ${isDone} then svc_now() end
    from held where n.id = ${notificationId} and n.channel_id = held.id
      and n.status = 'pending' returning 1`.execute(db);
  return rows.length === 1;
}
