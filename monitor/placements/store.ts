import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Spoken } from './placement.ts';
import { type PlacedInterface, type Placement, placeKey } from './placement.ts';

const lockKey = sql.lit(7_318_205);
/** Maximum rows of one statement. */
const batchSize = 5_000;

export async function lockShared(trx: Queryable): Promise<void> {
  await sql`select pg_advisory_xact_lock_shared(${lockKey})`.execute(trx);
}

export async function lockExclusive(trx: Queryable): Promise<void> {
  await sql`select pg_advisory_xact_lock(${lockKey})`.execute(trx);
}

const seconds = (column: string) => sql`extract(epoch from ${sql.ref(column)})::float8`;

/** By the index of the question in the list. */
export async function findAddressPlacements(
  db: Queryable,
  spoken: readonly Spoken[],
): Promise<(Placement & { index: number })[]> {
  const { rows } = await sql<Placement & { index: number }>`
    select (q.n - 1)::int as index, ${seconds('p.began_at')} as began_at, ${seconds('p.ended_at')} as ended_at, p.speaks,
      p.segment, p.is_unique
    from unnest(${spoken.map((one) => one.sensorId)}::bigint[], ${spoken.map((one) => one.subject)}::inet[])
      with ordinality as q(sensor_id, address, n)
    cross join lateral address_placements(q.sensor_id, q.address) p`.execute(db);
  return rows;
}

export async function findMacPlacements(
  db: Queryable,
  spoken: readonly Spoken[],
): Promise<(Placement & { index: number })[]> {
  const { rows } = await sql<Placement & { index: number }>`
    select (q.n - 1)::int as index, ${seconds('p.began_at')} as began_at, ${seconds('p.ended_at')} as ended_at, p.speaks,
      '' as segment
    from unnest(${spoken.map((one) => one.sensorId)}::bigint[], ${spoken.map((one) => one.subject)}::text[])
      with ordinality as q(sensor_id, mac, n)
    cross join lateral mac_placements(q.sensor_id, q.mac) p`.execute(db);
  return rows;
}

/** An address and the MAC that sent for it, in a sensor's report. */
export interface SpokenInterface {
  sensorId: number;
  address: string;
  mac: string;
  /** Start of the minute, seconds since 1970. */
  minute: number;
}

/** By the index of the question in the list: those of which a server of the sensor's node had both in that minute. */
export async function findOwnInterfaces(
  db: Queryable,
  spoken: readonly SpokenInterface[],
): Promise<Set<number>> {
  const { rows } = await sql<{ index: number }>`
    select distinct (q.n - 1)::int as index
    from unnest(${spoken.map((one) => one.sensorId)}::bigint[], ${spoken.map((one) => one.address)}::inet[],
      ${spoken.map((one) => one.mac)}::text[], ${spoken.map((one) => one.minute)}::float8[])
      with ordinality as q(sensor_id, address, mac, minute, n)
    cross join lateral interface_placements(q.sensor_id, q.address, q.mac) p
    where p.speaks and p.began_at < to_timestamp(q.minute + 60)
      and p.ended_at > to_timestamp(q.minute)`.execute(db);
  return new Set(rows.map(({ index }) => index));
}

/** Changes by a listing: new places, and ids of rows that it no longer has. */
export interface Changes {
  begun: PlacedInterface[];
  ended: number[];
}

interface OpenRow extends Omit<PlacedInterface, 'isUnique'> {
  id: number;
}

export async function findChanges(db: Queryable, places: readonly PlacedInterface[]): Promise<Changes> {
  const { rows } = await sql<OpenRow>`
    select id, cluster_id, vm_id as server_id, node, mac, segment, host(address) as address
    from vm_placements where ended_at is null`.execute(db);
  const held = new Set(rows.map(placeKey));
  const open = new Map(rows.map((row) => [placeKey(row), row.id]));
  const begun = new Map<string, PlacedInterface>();
  for (const place of places) {
    const key = placeKey(place);
    open.delete(key);
    if (!held.has(key)) begun.set(key, place);
  }
  return { begun: [...begun.values()], ended: [...open.values()] };
}

/** An address that another sensor may report now, and since when. */
export interface ChangedAddress {
  address: string;
  /** Unix seconds; `-Infinity`: always. */
  since: number;
}

/**
 * A known address at a new place began after the previous listing; an address that was never known counts as always
 * there. Ended places existed until now.
 */
export async function writeChanges(
  trx: Queryable,
  changes: Changes,
  listedBefore: string | null,
): Promise<ChangedAddress[]> {
  const since = new Map<string, number>();
  for (let i = 0; i < changes.begun.length; i += batchSize) {
    const { rows } = await sql<{ address: string | null; beganAt: number }>`
      with given as (
        select g."clusterId" as cluster_id, g."serverId" as vm_id, g.node, g.mac, g.segment, g.address, g."isUnique" as is_unique
        from jsonb_to_recordset(${JSON.stringify(changes.begun.slice(i, i + batchSize))}::jsonb)
          as g("clusterId" bigint, "serverId" bigint, node text, mac text, segment text, address inet, "isUnique" boolean)),
      known as (
        select g.*, case when g.address is null
            then exists (select 1 from vm_placements p where p.mac = g.mac and p.address is null)
            else exists (select 1 from vm_placements p where p.address = g.address
              and (p.is_unique or p.cluster_id = g.cluster_id)) end as is_known
        from given g)
      insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
      select cluster_id, vm_id, node, mac, segment, address, is_unique,
        case when is_known then coalesce(${listedBefore}::timestamptz, svc_now()) else '-infinity' end
      from known
      returning host(address) as address, ${seconds('began_at')} as began_at`.execute(trx);
    for (const { address, beganAt } of rows)
      if (address !== null) since.set(address, Math.min(since.get(address) ?? beganAt, beganAt));
  }
  await sql`update vm_placements set ended_at = svc_now()
    where id = any(${changes.ended}::bigint[])`.execute(trx);
  return [...since].map(([address, at]) => ({ address, since: at }));
}

const ofServers = (servers: readonly { clusterId: number; serverId: number }[]) => sql`
  unnest(${servers.map((one) => one.clusterId)}::bigint[], ${servers.map((one) => one.serverId)}::bigint[]) as s(cluster_id, vm_id)`;

export async function hasOpen(db: Queryable, servers: readonly { clusterId: number; serverId: number }[]) {
  if (servers.length === 0) return false;
  const { rows } = await sql`select 1 from ${ofServers(servers)}
    join vm_placements p using (cluster_id, vm_id) where p.ended_at is null limit 1`.execute(db);
  return rows.length > 0;
}

export async function endServers(
  trx: Queryable,
  servers: readonly { clusterId: number; serverId: number }[],
): Promise<void> {
  await sql`update vm_placements p set ended_at = svc_now() from ${ofServers(servers)}
    where p.cluster_id = s.cluster_id and p.vm_id = s.vm_id and p.ended_at is null`.execute(trx);
}

/** A node with servers of these clusters. */
export interface NodeName {
  clusterId: number;
  node: string;
  servers: number;
}

export async function listNodes(db: Queryable, clusterIds: readonly number[]): Promise<NodeName[]> {
  const { rows } = await sql<NodeName>`
    select cluster_id, node, count(distinct vm_id)::int as servers
    from vm_placements
    where cluster_id = any(${[...clusterIds]}::bigint[]) and ended_at is null and node is not null
    group by 1, 2 order by 2, 1`.execute(db);
  return rows;
}

/** All addresses that servers of these nodes ever had. */
export async function listAddressesOf(db: Queryable, nodes: readonly string[]): Promise<ChangedAddress[]> {
  const { rows } = await sql<{ address: string }>`
    select distinct host(address) as address from vm_placements
    where node = any(${[...nodes]}::text[]) and address is not null`.execute(db);
  return rows.map(({ address }) => ({ address, since: Number.NEGATIVE_INFINITY }));
}
