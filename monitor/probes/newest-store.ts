/** The newest minutes of every active probe, of all sites in one query. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface ProbeMinutes {
  probeId: number;
  siteId: number;
  name: string;
  /** Time since the end of the newest minute; null without a recent one. */
  ageSeconds: number | null;
  /** Newest first, of the last half hour; unmeasured minutes are left out. */
  minutes: { isUp: boolean; failure: string | null }[];
}

export async function listNewestMinutes(db: Queryable, count: number): Promise<ProbeMinutes[]> {
  const { rows } = await sql<ProbeMinutes>`
    select p.id as "probeId", p.site_id as "siteId", p.name,
      extract(epoch from svc_now() - max(m.minute) - interval '1 minute')::float8 as "ageSeconds",
      coalesce(json_agg(json_build_object('isUp', m.lost < m.sent, 'failure', m.failure) order by m.minute desc)
        filter (where m.minute is not null), '[]') as minutes
    from probes p
    left join lateral (
      select minute, sent, lost, failure from probe_minutes n
      where n.probe_id = p.id and n.minute > svc_now() - interval '30 minutes' and n.minute <= svc_now() - interval '1 minute'
      order by minute desc limit ${count}
    ) m on true
    where p.removed_at is null and p.is_enabled group by p.id`.execute(db);
  return rows;
}
