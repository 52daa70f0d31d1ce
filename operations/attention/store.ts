/** Items that are mailed to operators. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface AttentionAlert {
  key: string;
  title: string;
  text: string;
  /** Path of the page that resolves it. */
  href: string;
}

/** An item that has lasted, or been gone, for long enough to be mailed. */
export interface DueAlert extends AttentionAlert {
  isOver: boolean;
}

/** Brings the stored items in line with those that were found now, and forgets those that passed before they were mailed. */
export async function keepAlerts(trx: Queryable, found: readonly AttentionAlert[]): Promise<void> {
  const text = JSON.stringify(found);
  await sql`
    insert into attention_alerts as held (key, title, text, href)
    select key, title, text, href from jsonb_to_recordset(${text}::jsonb) as f(key text, title text, text text, href text)
    on conflict (key) do update set text = excluded.text, href = excluded.href, gone_since = null,
      title = case when held.mailed_at is null then excluded.title else held.title end`.execute(trx);
  const keys = found.map(({ key }) => key);
  await sql`update attention_alerts set gone_since = svc_now() where gone_since is null and key <> all(${keys}::text[])`.execute(
    trx,
  );
  await sql`delete from attention_alerts where mailed_at is null and gone_since is not null`.execute(trx);
}

export async function listDue(db: Queryable): Promise<DueAlert[]> {
  const { rows } = await sql<DueAlert>`
    select key, title, text, href, gone_since is not null as is_over from attention_alerts
    where mailed_at is null and opened_at <= svc_now() - interval '1 minute'
      or gone_since <= svc_now() - interval '1 minute' order by opened_at, key`.execute(db);
  return rows;
}

/** Records that the mail of an item was sent; one that is over is forgotten. */
export async function noteMailed(trx: Queryable, key: string): Promise<void> {
  await sql`delete from attention_alerts where key = ${key} and mailed_at is not null and gone_since is not null`.execute(
    trx,
  );
  await sql`update attention_alerts set mailed_at = svc_now() where key = ${key} and mailed_at is null`.execute(
    trx,
  );
}
