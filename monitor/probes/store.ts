/** The table of probes. */
import { sql } from 'kysely';
import type { PlanProbe } from '#contracts/sensor-api/http.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Probe } from './probe.ts';

const columns = sql`p.id, p.site_id, p.name, p.kind, p.target, p.port, p.question, p.interval_seconds, p.timeout_ms,
  p.is_enabled`;

export interface ProbeState extends Probe {
  /** Unix milliseconds. */
  addedAtMs: number;
  /** The newest minute reported within the last day, unix milliseconds; null without one. */
  newestMinuteMs: number | null;
  newestSent: number | null;
  newestLost: number | null;
  newestFailure: string | null;
}

export async function countProbes(db: Queryable, siteId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from probes where site_id = ${siteId} and removed_at is null`.execute(db);
  return rows[0]!.count;
}

export async function insertProbe(
  trx: Queryable,
  siteId: number,
  probe: Omit<Probe, 'id' | 'siteId' | 'isEnabled'>,
): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into probes (site_id, name, kind, target, port, question, interval_seconds, timeout_ms)
    values (${siteId}, ${probe.name}, ${probe.kind}, ${probe.target}, ${probe.port}, ${probe.question},
      ${probe.intervalSeconds}, ${probe.timeoutMs})
    returning id`.execute(trx);
  return rows[0]!.id;
}

export async function updateProbe(
  db: Queryable,
  siteId: number,
  probeId: number,
  change: Pick<Probe, 'name' | 'intervalSeconds' | 'timeoutMs' | 'isEnabled'>,
): Promise<boolean> {
  const { rows } = await sql`
    update probes set name = ${change.name}, interval_seconds = ${change.intervalSeconds},
      timeout_ms = ${change.timeoutMs}, is_enabled = ${change.isEnabled}
    where id = ${probeId} and site_id = ${siteId} and removed_at is null returning 1`.execute(db);
  return rows.length === 1;
}

export async function removeProbe(db: Queryable, siteId: number, probeId: number): Promise<boolean> {
  const { rows } = await sql`
    update probes set removed_at = svc_now()
    where id = ${probeId} and site_id = ${siteId} and removed_at is null returning 1`.execute(db);
  return rows.length === 1;
}

export async function findProbe(db: Queryable, siteId: number, probeId: number): Promise<Probe | null> {
  const { rows } = await sql<Probe>`
    select ${columns} from probes p
    where p.id = ${probeId} and p.site_id = ${siteId} and p.removed_at is null`.execute(db);
  return rows[0] ?? null;
}

export async function listProbes(db: Queryable, siteId: number): Promise<ProbeState[]> {
  const { rows } = await sql<ProbeState>`
    select ${columns}, (extract(epoch from p.created_at) * 1000)::float8 as added_at_ms, newest.sent as newest_sent, newest.lost as newest_lost, newest.failure as newest_failure,
      (extract(epoch from newest.minute) * 1000)::float8 as newest_minute_ms
    from probes p
    left join lateral (
      select minute, sent, lost, failure from probe_minutes m
      where m.probe_id = p.id and m.minute > svc_now() - interval '1 day' order by minute desc limit 1
    ) newest on true
    where p.site_id = ${siteId} and p.removed_at is null order by lower(p.name), p.id`.execute(db);
  return rows;
}

/** Read-only, like every query for plans (NET-5.3). */
export function listPlanned(db: Queryable, siteId: number): Promise<PlanProbe[]> {
  return db
    .transaction()
    .setAccessMode('read only')
    .execute(async (trx) => {
      const { rows } = await sql<
        Omit<PlanProbe, 'interval_seconds' | 'timeout_ms'> & Pick<Probe, 'intervalSeconds' | 'timeoutMs'>
      >`select id, kind, target, port, question, interval_seconds, timeout_ms from probes
        where site_id = ${siteId} and removed_at is null and is_enabled order by id`.execute(trx);
      return rows.map(({ intervalSeconds, timeoutMs, ...probe }) => ({
        ...probe,
        interval_seconds: intervalSeconds,
        timeout_ms: timeoutMs,
      }));
    });
}

/** Number of active probes of each site. */
export async function countPlanned(db: Queryable): Promise<Map<number, number>> {
  const { rows } = await sql<{ siteId: number; count: number }>`
    select site_id, count(*)::int as count from probes where removed_at is null
      and is_enabled group by 1`.execute(db);
  return new Map(rows.map(({ siteId, count }) => [siteId, count]));
}
