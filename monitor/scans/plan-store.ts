/** The plans that sensors fetched, and the targets that these named. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface NewTarget {
  clusterId: number;
  vmId: number;
  interfaceId: number;
  address: string;
}

/** Gives these targets of a sensor their ids, in the order given; the same target keeps its id. */
export async function nameTargets(
  db: Queryable,
  sensor: { id: number; siteId: number },
  targets: readonly NewTarget[],
): Promise<number[]> {
  const { rows } = await sql<{ n: number; id: number }>`
    with given as (
      select n, cluster_id, vm_id, interface_id, address
      from unnest(${targets.map((one) => one.clusterId)}::bigint[], ${targets.map((one) => one.vmId)}::bigint[],
        ${targets.map((one) => one.interfaceId)}::bigint[], ${targets.map((one) => one.address)}::inet[])
        with ordinality as g(cluster_id, vm_id, interface_id, address, n)),
    named as (
      insert into scan_targets as held (sensor_id, site_id, cluster_id, vm_id, interface_id, address)
      select ${sensor.id}, ${sensor.siteId}, cluster_id, vm_id, interface_id, address from given
      order by cluster_id, vm_id, interface_id, address
      on conflict (sensor_id, cluster_id, vm_id, interface_id, address)
        do update set named_at = svc_now(), site_id = excluded.site_id,
          first_named_at = case when held.named_at < svc_now() - interval '70 minutes' then svc_now() else held.first_named_at end
      returning id, cluster_id, vm_id, interface_id, address)
    select given.n::int as n, named.id from given join named using (cluster_id, vm_id, interface_id, address)
    order by given.n`.execute(db);
  return rows.map(({ id }) => id);
}

/** Targets that a plan names for this long without a change are noted again: retention goes by that time. */
export async function touchTargets(db: Queryable, sensorId: number, ids: readonly number[]): Promise<void> {
  await sql`
    update scan_targets set named_at = svc_now(),
      first_named_at = case when named_at < svc_now() - interval '70 minutes' then svc_now() else first_named_at end
    where sensor_id = ${sensorId} and id = any(${[...ids]}::bigint[]) and named_at < svc_now() - interval '1 hour'`.execute(
    db,
  );
}

export interface StoredPlan {
  revision: number;
  fingerprint: string;
  fetchedAgeSeconds: number;
}

/** Null before a sensor's first fetch. */
export async function readPlanState(db: Queryable, sensorId: number): Promise<StoredPlan | null> {
  const { rows } = await sql<StoredPlan>`
    select revision, fingerprint, extract(epoch from svc_now() - fetched_at)::float8 as "fetchedAgeSeconds"
    from scan_plans where sensor_id = ${sensorId}`.execute(db);
  return rows[0] ?? null;
}

/**
 * Notes that a sensor got a plan with this content; its revision grows when the content is another one. `addresses` is the number of
 * those that it would name without its bound.
 */
export async function notePlan(
  db: Queryable,
  sensor: { id: number; siteId: number },
  plan: { fingerprint: string; addresses: number },
): Promise<number> {
  const { rows } = await sql<{ revision: number }>`
    insert into scan_plans as held (sensor_id, site_id, fingerprint, entries)
    values (${sensor.id}, ${sensor.siteId}, ${plan.fingerprint}, ${plan.addresses})
    on conflict (sensor_id) do update set fetched_at = svc_now(), site_id = excluded.site_id, entries = excluded.entries,
      revision = held.revision + case when held.fingerprint = excluded.fingerprint then 0 else 1 end,
      changed_at = case when held.fingerprint = excluded.fingerprint then held.changed_at else svc_now() end,
      fingerprint = excluded.fingerprint
    returning revision`.execute(db);
  return rows[0]!.revision;
}

/** Of all sensors, the addresses that their plans would name without the bound; none for one that stopped to fetch its plan. */
export async function countEntries(db: Queryable): Promise<Map<number, number>> {
  const { rows } = await sql<{ sensorId: number; entries: number }>`
    select sensor_id as "sensorId", entries from scan_plans
    where fetched_at > svc_now() - interval '10 minutes' order by sensor_id`.execute(db);
  return new Map(rows.map(({ sensorId, entries }) => [sensorId, entries]));
}
