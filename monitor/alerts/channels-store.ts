/** Where people are told. A secret leaves this file only towards the sender. */
import { sql } from 'kysely';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';

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
  /** Of the newest notification, while it is not delivered. */
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

/** Null when there are as many as there may be. */
export async function insertChannel(
  db: Queryable,
  channel: { kind: string; name: string; recipients: string[]; url: string | null; secret: Buffer | null },
  channelsMax: number,
): Promise<number | null> {
  return inTransaction(db, async (trx) => {
    await sql`lock table alert_channels in share row exclusive mode`.execute(trx);
    const { rows } = await sql<{ id: number }>`
      insert into alert_channels (kind, name, recipients, url, secret)
      select ${channel.kind}, ${channel.name}, ${channel.recipients}::text[], ${channel.url}, ${channel.secret}::bytea
      where (select count(*) from alert_channels) < ${channelsMax} returning id`.execute(trx);
    return rows[0]?.id ?? null;
  });
}

/** What waits for a channel that is switched off is given up: nobody wants last week's alert. */
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
