/** Statements on guards and what they dropped. */
import { sql } from 'kysely';
import type { GuardReason } from '#contracts/guard-reasons.ts';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { GuardSetting, SpoofingAttempt, SpoofingSum } from './index.ts';

const keptFor = sql.lit(kept.events);
/** Packets of one reason that come within this time of the last ones belong to the same attempt. */
const pause = sql.lit('10 minutes');
const sourcesMax = sql.lit(16);

/** Null for a server whose guard was never switched. */
export async function findGuard(db: Queryable, serverId: number): Promise<GuardSetting | null> {
  const { rows } = await sql<GuardSetting>`
    select is_on, version, status, changed_at
    from server_guards where server_id = ${serverId}`.execute(db);
  return rows[0] ?? null;
}

export async function putGuard(tx: Queryable, serverId: number, isOn: boolean): Promise<void> {
  await sql`insert into server_guards as kept (server_id, is_on) values (${serverId}, ${isOn})
    on conflict (server_id) do update set is_on = excluded.is_on, version = kept.version + 1,
      status = 'pending', changed_at = svc_now()`.execute(tx);
}

/** False when there is a newer version, which stays as it is. */
export async function noteApplied(
  db: Queryable,
  serverId: number,
  version: number,
  status: 'applied' | 'failed',
): Promise<boolean> {
  const { rows } = await sql`update server_guards set status = ${status}
    where server_id = ${serverId} and version = ${version} returning 1`.execute(db);
  return rows.length === 1;
}

export interface Reading {
  serverId: number;
  device: string;
  networkId: number | null;
  reason: GuardReason;
  /** Since the guard stands. */
  packets: number;
  sources: readonly string[];
}

/** Notes the totals, and adds what is new in them to attempts. Each interface and reason may stand in `readings` once. */
export async function putReadings(tx: Queryable, readings: readonly Reading[]): Promise<void> {
  await sql`
    with seen as (
      select * from jsonb_to_recordset(${JSON.stringify(readings)}::jsonb) as s ("serverId" bigint, device text,
        "networkId" bigint, reason text, packets bigint, sources text[])),
    fresh as (
      select seen.*, case when kept.packets <= seen.packets then seen.packets - kept.packets else seen.packets end as added
      from seen left join guard_readings kept on kept.server_id = seen."serverId" and kept.device = seen.device
        and kept.reason = seen.reason
      where seen.packets > 0 or kept.packets > 0),
    noted as (
      insert into guard_readings (server_id, device, reason, packets)
      select "serverId", device, reason, packets from fresh
      on conflict (server_id, device, reason) do update set packets = excluded.packets),
    extended as (
      update spoofing_attempts a set packets = a.packets + fresh.added, last_at = svc_now(),
        sources = array(select distinct source from unnest(a.sources || fresh.sources) source limit ${sourcesMax})
      from fresh
      where fresh.added > 0 and a.server_id = fresh."serverId" and a.device = fresh.device
        and a.reason = fresh.reason and a.last_at > svc_now() - ${pause}::interval
      returning a.server_id, a.device, a.reason)
    insert into spoofing_attempts (server_id, device, network_id, reason, packets, sources)
    select "serverId", device, "networkId", reason, added, sources[1:${sourcesMax}] from fresh
    where added > 0 and not exists (select 1 from extended e
      where e.server_id = fresh."serverId" and e.device = fresh.device and e.reason = fresh.reason)`.execute(
    tx,
  );
}

/** The newest first. */
export async function listAttempts(
  db: Queryable,
  serverId: number,
  limit: number,
): Promise<SpoofingAttempt[]> {
  const { rows } = await sql<SpoofingAttempt>`
    select id, device, network_id, reason, packets, sources, began_at, last_at
    from spoofing_attempts where server_id = ${serverId} order by last_at desc, id desc limit ${limit}`.execute(
    db,
  );
  return rows;
}

/** Of the attempts that lasted into the last days. */
export async function sumAttempts(db: Queryable, serverId: number, days: number): Promise<SpoofingSum> {
  const { rows } = await sql<SpoofingSum>`
    select coalesce(sum(packets), 0)::bigint as packets, max(last_at) as last_at from spoofing_attempts
    where server_id = ${serverId} and last_at > svc_now() - make_interval(days => ${days})`.execute(db);
  return rows[0]!;
}

/** Servers whose guards have dropped at least so many packets in attempts that go on. */
export async function listActiveServers(db: Queryable, packetsMin: number): Promise<number[]> {
  const { rows } = await sql<{ serverId: number }>`
    select server_id from spoofing_attempts where last_at > svc_now() - ${pause}::interval
    group by server_id having sum(packets) >= ${packetsMin} order by server_id`.execute(db);
  return rows.map(({ serverId }) => serverId);
}

/** Deletes at most `limit` expired attempts; returns how many. */
export async function deleteExpired(tx: Queryable, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from spoofing_attempts where id in (
      select id from spoofing_attempts where last_at < svc_now() - ${keptFor}::interval limit ${limit})`.execute(
    tx,
  );
  return Number(numAffectedRows ?? 0n);
}
