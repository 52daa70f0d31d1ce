/** Notification channels. Pages never receive the secret. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecretColumn } from '#service-kit/secrets/index.ts';
import type { ChannelSettings } from './channels/index.ts';

/** Signs deliveries to webhooks, or is the secret setting of the channel's kind. */
export const channelSecret: SecretColumn = {
  table: 'alert_channels',
  key: 'id',
  sealed: 'sealed_secret',
  clear: 'clear_secret',
};

/** Which alerts a channel receives, and when. */
export interface Routing {
  /** Null: of all sites. Alerts that concern all sites go to every channel. */
  siteIds: number[] | null;
  /** Null: of all kinds. */
  kinds: string[] | null;
  isCriticalOnly: boolean;
  /** Minutes of the day, in a time zone of IANA; then alerts that are not critical wait. */
  quiet: { from: number; to: number; zone: string } | null;
}

export interface StoredChannel extends Routing {
  id: number;
  kind: string;
  name: string;
  settings: ChannelSettings;
}

export interface Channel extends StoredChannel {
  isEnabled: boolean;
  consecutiveFailures: number;
  waiting: number;
  lastDeliveredAtMs: number | null;
  /** Error of the newest notification while it is not delivered. */
  lastError: string | null;
}

export async function listChannels(db: Queryable): Promise<Channel[]> {
  const { rows } = await sql<Channel>`
    select c.id, c.kind, c.name, c.settings, c.site_ids, c.alert_kinds as kinds, c.is_critical_only,
      case when c.quiet_zone is not null
        then jsonb_build_object('from', c.quiet_from, 'to', c.quiet_to, 'zone', c.quiet_zone) end as quiet,
      c.is_enabled, c.consecutive_failures,
      (select count(*)::int from alert_notifications n where n.channel_id = c.id and n.status = 'pending') as waiting,
      (select (extract(epoch from max(n.finished_at)) * 1000)::float8 from alert_notifications n
        where n.channel_id = c.id and n.status = 'delivered') as last_delivered_at_ms,
      (select n.last_error from alert_notifications n where n.channel_id = c.id and n.attempts > 0
        order by n.id desc limit 1) as last_error
    from alert_channels c order by lower(c.name), c.id`.execute(db);
  return rows;
}

/** True for a time zone that this PostgreSQL has rules for. */
export async function knowsTimeZone(db: Queryable, name: string): Promise<boolean> {
  const { rows } = await sql`select 1 from pg_timezone_names where name = ${name}`.execute(db);
  return rows.length > 0;
}

/** Id for a new channel, reserved because its secret is sealed for this row. */
export async function nextChannelId(trx: Queryable): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    select nextval(pg_get_serial_sequence('alert_channels', 'id')) as id`.execute(trx);
  return rows[0]!.id;
}

/** Returns false at the maximum number of channels. */
export async function insertChannel(
  trx: Queryable,
  channel: StoredChannel & { sealedSecret: Buffer | null },
  channelsMax: number,
): Promise<boolean> {
  const { id, kind, name, settings, siteIds, kinds, isCriticalOnly, quiet, sealedSecret } = channel;
  await sql`lock table alert_channels in share row exclusive mode`.execute(trx);
  const { rows } = await sql`
    insert into alert_channels (id, kind, name, settings, site_ids, alert_kinds, is_critical_only, quiet_from, quiet_to, quiet_zone,
      sealed_secret) overriding system value
    select ${id}, ${kind}, ${name}, ${JSON.stringify(settings)}::jsonb, ${siteIds}::bigint[], ${kinds}::text[], ${isCriticalOnly},
      ${quiet?.from ?? null}, ${quiet?.to ?? null}, ${quiet?.zone ?? null}, ${sealedSecret}::bytea
    where (select count(*) from alert_channels) < ${channelsMax} returning 1`.execute(trx);
  return rows.length === 1;
}

/** A secret of null stays as it is. Returns false when there is no such channel. */
export async function updateChannel(
  trx: Queryable,
  channel: StoredChannel & { sealedSecret: Buffer | null },
): Promise<boolean> {
  const { id, name, settings, siteIds, kinds, isCriticalOnly, quiet, sealedSecret } = channel;
  const { rows } = await sql`
    update alert_channels set name = ${name}, settings = ${JSON.stringify(settings)}::jsonb, site_ids = ${siteIds}::bigint[],
      alert_kinds = ${kinds}::text[], is_critical_only = ${isCriticalOnly}, quiet_from = ${quiet?.from ?? null},
      quiet_to = ${quiet?.to ?? null}, quiet_zone = ${quiet?.zone ?? null},
      sealed_secret = coalesce(${sealedSecret}::bytea, sealed_secret)
    where id = ${id} returning 1`.execute(trx);
  return rows.length === 1;
}

/** Pending notifications of a disabled channel are dropped, because old alerts are useless. */
export async function setChannelEnabled(db: Queryable, id: number, isEnabled: boolean): Promise<boolean> {
  const { rows } = await sql`
    with gone as (update alert_notifications set status = 'failed', finished_at = svc_now(), last_error = 'the channel was switched off'
      where channel_id = ${id} and status = 'pending' and not ${isEnabled})
    update alert_channels set is_enabled = ${isEnabled}, consecutive_failures = 0
    where id = ${id} returning 1`.execute(db);
  return rows.length === 1;
}

export async function deleteChannel(db: Queryable, id: number): Promise<boolean> {
  const { rows } = await sql`delete from alert_channels where id = ${id} returning 1`.execute(db);
  return rows.length === 1;
}
