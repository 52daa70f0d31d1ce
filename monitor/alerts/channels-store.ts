/** Notification channels. Pages never receive the secret. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecretColumn } from '#service-kit/secrets/index.ts';

/** Signs deliveries to webhooks; mail has no secret. */
export const channelSecret: SecretColumn = {
  table: 'alert_channels',
  key: 'id',
  sealed: 'sealed_secret',
  clear: 'clear_secret',
};

export interface Channel {
  id: number;
  kind: 'email' | 'webhook';
  name: string;
  recipients: string[];
  url: string | null;
  isEnabled: boolean;
  consecutiveFailures: number;
  waiting: number;
  lastDeliveredAtMs: number | null;
  /** Error of the newest notification while it is not delivered. */
  lastError: string | null;
}

export async function listChannels(db: Queryable): Promise<Channel[]> {
  const { rows } = await sql<Channel>`
    select c.id, c.kind, c.name, c.recipients, c.url, c.is_enabled as "isEnabled",
      c.consecutive_failures as "consecutiveFailures",
      (select count(*)::int from alert_notifications n where n.channel_id = c.id and n.status = 'pending') as waiting,
      (select (extract(epoch from max(n.finished_at)) * 1000)::float8 from alert_notifications n
        where n.channel_id = c.id and n.status = 'delivered') as "lastDeliveredAtMs",
      (select n.last_error from alert_notifications n where n.channel_id = c.id and n.attempts > 0
        order by n.id desc limit 1) as "lastError"
    from alert_channels c order by lower(c.name), c.id`.execute(db);
  return rows;
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
  channel: {
    id: number;
    kind: string;
    name: string;
    recipients: string[];
    url: string | null;
    sealedSecret: Buffer | null;
  },
  channelsMax: number,
): Promise<boolean> {
  await sql`lock table alert_channels in share row exclusive mode`.execute(trx);
  const { rows } = await sql`
    insert into alert_channels (id, kind, name, recipients, url, sealed_secret) overriding system value
    select ${channel.id}, ${channel.kind}, ${channel.name}, ${channel.recipients}::text[], ${channel.url},
      ${channel.sealedSecret}::bytea
    where (select count(*) from alert_channels) < ${channelsMax} returning 1`.execute(trx);
  return rows.length === 1;
}

/** Pending notifications of a disabled channel are dropped, because old alerts are useless. */
export async function setChannelEnabled(db: Queryable, id: number, isEnabled: boolean): Promise<boolean> {
  const { rows } = await sql`
    with gone as (update alert_notifications set status = 'failed', finished_at = svc_now(), last_error = 'the channel was switched off'
      where channel_id = ${id} and status = 'pending' and not ${isEnabled})
    update alert_channels set is_enabled = ${isEnabled}, consecutive_failures = 0 where id = ${id} returning 1`.execute(
    db,
  );
  return rows.length === 1;
}

export async function deleteChannel(db: Queryable, id: number): Promise<boolean> {
  const { rows } = await sql`delete from alert_channels where id = ${id} returning 1`.execute(db);
  return rows.length === 1;
}
