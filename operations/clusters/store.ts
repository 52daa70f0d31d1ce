/** Every statement on nodes and the room that is reserved on them. */
import { sql } from 'kysely';
import type { NodeCheck } from '#operations/hypervisors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Node, Room } from './node.ts';

const nodeText = `
  select n.id, n.cluster_id, c.name as cluster_name, c.driver, n.name, n.uri, n.storage_pool, n.bridge,
    n.network_bridges, n.is_open, n.seen_at, n.last_error,
    json_build_object('vcpus', n.vcpus, 'memoryMb', n.memory_mb, 'diskGb', n.disk_gb) as capacity,
    json_build_object('vcpus', coalesce(r.vcpus, 0), 'memoryMb', coalesce(r.memory_mb, 0),
      'diskGb', coalesce(r.disk_gb, 0)) as used, coalesce(r.guests, 0) as guest_count
  from nodes n join clusters c on c.id = n.cluster_id
  left join lateral (select sum(vcpus)::int as vcpus, sum(memory_mb)::int as memory_mb, sum(disk_gb)::int as disk_gb,
    count(*) as guests from node_reservations where node_id = n.id and released_at is null) r on true`;

/** All nodes, or one cluster's; oldest first. */
export async function listNodes(db: Queryable, clusterId: number | null): Promise<Node[]> {
  const { rows } = await sql<Node>`${sql.raw(nodeText)}
    where ${clusterId}::bigint is null or n.cluster_id = ${clusterId} order by n.cluster_id, n.id`.execute(
    db,
  );
  return rows;
}

export async function findNode(db: Queryable, nodeId: number): Promise<Node | null> {
  const { rows } = await sql<Node>`${sql.raw(nodeText)} where n.id = ${nodeId}`.execute(db);
  return rows[0] ?? null;
}

/** The node that holds a server's room; of a server that is gone, the one that held it last. */
export async function findNodeOfServer(db: Queryable, serverId: number): Promise<Node | null> {
  const { rows } = await sql<Node>`${sql.raw(nodeText)} where n.id = (
    select node_id from node_reservations where server_id = ${serverId} order by id desc limit 1)`.execute(
    db,
  );
  return rows[0] ?? null;
}

/** A cluster's nodes with their rows locked, so that placements in the cluster run one at a time. */
export async function lockNodes(tx: Queryable, clusterId: number): Promise<Node[]> {
  await sql`select 1 from nodes where cluster_id = ${clusterId} order by id for update`.execute(tx);
  return listNodes(tx, clusterId);
}

export async function insertReservation(
  tx: Queryable,
  reservation: { nodeId: number; serverId: number } & Room,
): Promise<void> {
  await sql`insert into node_reservations (node_id, server_id, vcpus, memory_mb, disk_gb)
    values (${reservation.nodeId}, ${reservation.serverId}, ${reservation.vcpus}, ${reservation.memoryMb},
      ${reservation.diskGb})`.execute(tx);
}

/** Nothing for a server without a reservation. */
export async function updateReservation(tx: Queryable, serverId: number, room: Room): Promise<void> {
  await sql`update node_reservations set vcpus = ${room.vcpus}, memory_mb = ${room.memoryMb},
      disk_gb = ${room.diskGb}
    where server_id = ${serverId} and released_at is null`.execute(tx);
}

export async function releaseReservation(tx: Queryable, serverId: number): Promise<void> {
  await sql`update node_reservations set released_at = svc_now()
    where server_id = ${serverId} and released_at is null`.execute(tx);
}

export interface NewNode extends Room {
  clusterId: number;
  name: string;
  uri: string | null;
  storagePool: string | null;
  bridge: string | null;
  networkBridges: string | null;
}

export async function insertNode(db: Queryable, node: NewNode): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into nodes (cluster_id, name, uri, storage_pool, bridge, network_bridges, vcpus, memory_mb, disk_gb)
    values (${node.clusterId}, ${node.name}, ${node.uri}, ${node.storagePool}, ${node.bridge}, ${node.networkBridges},
      ${node.vcpus}, ${node.memoryMb}, ${node.diskGb}) returning id`.execute(db);
  return rows[0]!.id;
}

/** Makes a node or brings it up to date, by cluster and name. */
export async function ensureNode(db: Queryable, node: NewNode): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into nodes (cluster_id, name, uri, storage_pool, bridge, network_bridges, vcpus, memory_mb, disk_gb)
    values (${node.clusterId}, ${node.name}, ${node.uri}, ${node.storagePool}, ${node.bridge}, ${node.networkBridges},
      ${node.vcpus}, ${node.memoryMb}, ${node.diskGb})
    on conflict (cluster_id, name) do update set uri = excluded.uri, storage_pool = excluded.storage_pool,
      bridge = excluded.bridge, network_bridges = excluded.network_bridges, vcpus = excluded.vcpus, memory_mb = excluded.memory_mb, disk_gb = excluded.disk_gb
    returning id`.execute(db);
  return rows[0]!.id;
}

export interface NodeChange extends Partial<Room> {
  uri?: string | null;
  storagePool?: string | null;
  bridge?: string | null;
  networkBridges?: string | null;
  isOpen?: boolean;
}

export async function updateNode(db: Queryable, nodeId: number, change: NodeChange): Promise<void> {
  const given = <K extends keyof NodeChange>(name: K) => change[name] !== undefined;
  await sql`update nodes set
      uri = case when ${given('uri')} then ${change.uri ?? null} else uri end,
      storage_pool = case when ${given('storagePool')} then ${change.storagePool ?? null} else storage_pool end,
      bridge = case when ${given('bridge')} then ${change.bridge ?? null} else bridge end,
      network_bridges = case when ${given('networkBridges')} then ${change.networkBridges ?? null}
        else network_bridges end,
      is_open = coalesce(${change.isOpen ?? null}, is_open),
      vcpus = coalesce(${change.vcpus ?? null}, vcpus), memory_mb = coalesce(${change.memoryMb ?? null}, memory_mb),
      disk_gb = coalesce(${change.diskGb ?? null}, disk_gb)
    where id = ${nodeId}`.execute(db);
}

export async function countReservations(db: Queryable, nodeId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from node_reservations where node_id = ${nodeId}`.execute(db);
  return rows[0]!.count;
}

export async function deleteNode(db: Queryable, nodeId: number): Promise<void> {
  await sql`delete from nodes where id = ${nodeId}`.execute(db);
}

/** Memory that guests held at one moment. */
export interface DayRoom {
  at: Date;
  memoryMb: number;
}

/** At the end of each of the last UTC days, and now; the oldest first. */
export async function listDayRoom(db: Queryable, days: number): Promise<DayRoom[]> {
  const { rows } = await sql<DayRoom>`
    with moments as (
      select least(svc_now(), (day + interval '1 day') at time zone 'utc') as at
      from generate_series(date_trunc('day', svc_now() at time zone 'utc') - make_interval(days => ${days - 1}),
        date_trunc('day', svc_now() at time zone 'utc'), interval '1 day') as each (day))
    select at, coalesce((select sum(r.memory_mb) from node_reservations r
      where r.reserved_at <= at and (r.released_at is null or r.released_at > at)), 0)::bigint as memory_mb
    from moments order by at`.execute(db);
  return rows;
}

/** What came of looking at a node: it answered, or what it said instead. */
export async function noteSeen(db: Queryable, nodeId: number, error: string | null): Promise<void> {
  await sql`update nodes set last_error = ${error},
      seen_at = case when ${error === null} then svc_now() else seen_at end
    where id = ${nodeId}`.execute(db);
}

/** The last check of a node. */
export interface LastCheck {
  askedAt: Date;
  /** Null while it is under way. */
  finishedAt: Date | null;
  checks: NodeCheck[];
}

/** Null for a node that was never checked. */
export async function findCheck(db: Queryable, nodeId: number): Promise<LastCheck | null> {
  const { rows } = await sql<LastCheck>`
    select asked_at, finished_at, results as checks
    from node_checks where node_id = ${nodeId}`.execute(db);
  return rows[0] ?? null;
}

/** The results of the one before stay until this one has its own. */
export async function beginCheck(tx: Queryable, nodeId: number): Promise<void> {
  await sql`insert into node_checks (node_id) values (${nodeId})
    on conflict (node_id) do update set asked_at = svc_now(), finished_at = null`.execute(tx);
}

export async function endCheck(tx: Queryable, nodeId: number, checks: readonly NodeCheck[]): Promise<void> {
  await sql`update node_checks set finished_at = svc_now(), results = ${JSON.stringify(checks)}::jsonb
    where node_id = ${nodeId}`.execute(tx);
}

/** Nodes of one location that are run by the same kind of hypervisor. */
export interface Cluster {
  id: number;
  locationId: number;
  name: string;
  driver: string;
}

/** Oldest first; all of them, or those of one location. */
export async function listClusters(db: Queryable, locationId?: number): Promise<Cluster[]> {
  const { rows } = await sql<Cluster>`
    select id, location_id, name, driver from clusters
    where ${locationId ?? null}::bigint is null or location_id = ${locationId ?? null} order by id`.execute(
    db,
  );
  return rows;
}

/** Makes a cluster or changes the driver of the one of that name; returns its id. */
export async function ensureCluster(db: Queryable, cluster: Omit<Cluster, 'id'>): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into clusters (location_id, name, driver) values (${cluster.locationId}, ${cluster.name}, ${cluster.driver})
    on conflict (name) do update set driver = excluded.driver returning id`.execute(db);
  return rows[0]!.id;
}

/** The cluster's row, locked so that two changes of what it has are not made beside each other; false when there is none. */
export async function lockCluster(tx: Queryable, clusterId: number): Promise<boolean> {
  const { rows } = await sql`select 1 from clusters where id = ${clusterId} for no key update`.execute(tx);
  return rows.length === 1;
}
