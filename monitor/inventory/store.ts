import { sql } from 'kysely';
import type { InventoryChange } from '#contracts/admin-api/inventory-changes.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { InventoryMachine } from './inventory.ts';

/** Serializes imports and notices, which change the same rows. */
export async function lockInventory(db: Queryable): Promise<void> {
  await sql`select pg_advisory_xact_lock(7318201)`.execute(db);
}

/** The database's time as text with full precision, for comparison with timestamps of the database. */
export async function databaseTime(db: Queryable): Promise<string> {
  const { rows } = await sql<{ now: string }>`select svc_now()::text as now`.execute(db);
  return rows[0]!.now;
}

/** Machines with a notice at or after this time. */
export async function listTombstonesSince(db: Queryable, startedAt: string): Promise<Set<string>> {
  const { rows } = await sql<{ key: string }>`
    select cluster_id || '/' || vm_id as key from vm_tombstones
    where received_at >= ${startedAt}::timestamptz`.execute(db);
  return new Set(rows.map((row) => row.key));
}

/** Adds or updates machines and their interfaces; interfaces that are no longer listed are retired. */
export async function upsertMachines(db: Queryable, machines: readonly InventoryMachine[]): Promise<void> {
  const json = JSON.stringify(machines);
  await sql`
    insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at)
    select v."clusterId", v."serverId", v.node, v.name, v.state, v."updatedAt"
    from jsonb_to_recordset(${json}::jsonb)
      as v("clusterId" bigint, "serverId" bigint, node text, name text, state text, "updatedAt" timestamptz)
    on conflict (cluster_id, vm_id) do update set node = excluded.node, name = excluded.name, state = excluded.state,
      updated_at = excluded.updated_at, last_seen_at = svc_now(), retired_at = null`.execute(db);
  await sql`
    with listed as (
      select v."clusterId" as cluster_id, v."serverId" as vm_id, i."interfaceId" as interface_id, i.mac, i.bridge, i.vlan,
             i.addresses
      from jsonb_to_recordset(${json}::jsonb) as v("clusterId" bigint, "serverId" bigint, interfaces jsonb),
           jsonb_to_recordset(v.interfaces)
             as i("interfaceId" bigint, mac text, bridge text, vlan integer, addresses inet[])),
    retired as (
      update inventory_interfaces held set retired_at = svc_now()
      where held.retired_at is null
        and (held.cluster_id, held.vm_id) in (select (v->>'clusterId')::bigint, (v->>'serverId')::bigint from jsonb_array_elements(${json}::jsonb) v)
        and not exists (select 1 from listed l where l.cluster_id = held.cluster_id and l.vm_id = held.vm_id and l.interface_id = held.interface_id))
    insert into inventory_interfaces (cluster_id, vm_id, interface_id, mac, bridge, vlan, addresses)
    select cluster_id, vm_id, interface_id, mac, bridge, vlan, addresses from listed
    on conflict (cluster_id, vm_id, interface_id) do update set mac = excluded.mac, bridge = excluded.bridge,
      vlan = excluded.vlan, addresses = excluded.addresses, last_seen_at = svc_now(), retired_at = null`.execute(
    db,
  );
}

export interface StateChange {
  clusterId: number;
  serverName: string;
  addresses: string[];
  before: string;
  after: string;
}

/** Of machines that are known and live: which of these listings say another state, such as stopped after running. */
export async function listStateChanges(
  db: Queryable,
  machines: readonly InventoryMachine[],
): Promise<StateChange[]> {
  const { rows } = await sql<StateChange>`
    select v.cluster_id, l.name as server_name, v.state as before, l.state as after, array(
      select distinct host(a) from inventory_interfaces i, unnest(i.addresses) a
      where i.cluster_id = v.cluster_id and i.vm_id = v.vm_id and i.retired_at is null order by 1) as addresses
    from jsonb_to_recordset(${JSON.stringify(machines)}::jsonb) as l("clusterId" bigint, "serverId" bigint, name text, state text)
    join inventory_vms v on v.cluster_id = l."clusterId" and v.vm_id = l."serverId"
    where v.retired_at is null and v.state <> l.state order by v.cluster_id, v.vm_id`.execute(db);
  return rows;
}

export interface MachineKey {
  clusterId: number;
  serverId: number;
}

/** Live machines that are missing from this listing. */
export async function listUnlisted(db: Queryable, listed: readonly MachineKey[]): Promise<MachineKey[]> {
  const { rows } = await sql<MachineKey>`
    select cluster_id, vm_id as server_id from inventory_vms
    where retired_at is null and (cluster_id, vm_id) not in (
      select l."clusterId", l."serverId" from jsonb_to_recordset(${JSON.stringify(listed)}::jsonb)
        as l("clusterId" bigint, "serverId" bigint))
    order by cluster_id, vm_id`.execute(db);
  return rows;
}

/** Retires a machine and its interfaces; false when it is unknown or retired already. Returns its MACs. */
export async function retireMachine(
  db: Queryable,
  { clusterId, serverId }: MachineKey,
): Promise<{ wasLive: boolean; macs: string[] }> {
  const vm = await sql`update inventory_vms set retired_at = svc_now()
    where cluster_id = ${clusterId} and vm_id = ${serverId} and retired_at is null returning 1`.execute(db);
  if (vm.rows.length === 0) return { wasLive: false, macs: [] };
  const { rows } = await sql<{ mac: string }>`update inventory_interfaces set retired_at = svc_now()
    where cluster_id = ${clusterId} and vm_id = ${serverId} and retired_at is null returning mac`.execute(db);
  return { wasLive: true, macs: rows.map((row) => row.mac) };
}

/** Those of the MACs that a live machine of these clusters uses. */
export async function listCarriedMacs(db: Queryable, clusterIds: readonly number[], macs: readonly string[]) {
  const { rows } = await sql<{ mac: string }>`
    select distinct mac from inventory_interfaces
    where retired_at is null and mac = any(${[...macs]})
      and cluster_id = any(${[...clusterIds]}::bigint[])`.execute(db);
  return rows.map((row) => row.mac);
}

/** Adds tombstones. Returns the ids without an earlier one. */
export async function addTombstones(
  db: Queryable,
  clusterId: number,
  destroyedAt: string | null,
  serverIds: readonly number[],
): Promise<Set<number>> {
  const { rows } = await sql<{ serverId: number }>`
    insert into vm_tombstones (cluster_id, vm_id, destroyed_at)
    select ${clusterId}, id, ${destroyedAt}::timestamptz from unnest(${[...serverIds]}::bigint[]) as id order by id
    on conflict (cluster_id, vm_id) do nothing
    returning vm_id as server_id`.execute(db);
  return new Set(rows.map((row) => row.serverId));
}

export type ImportCounts = Record<string, number>;

export interface ImportState {
  lastRunAtMs: number | null;
  lastSuccessAtMs: number | null;
  lastError: string | null;
  lastCounts: ImportCounts;
}

export async function readState(db: Queryable): Promise<ImportState> {
  const { rows } = await sql<ImportState>`
    select (extract(epoch from last_run_at) * 1000)::float8 as last_run_at_ms,
           (extract(epoch from last_success_at) * 1000)::float8 as last_success_at_ms, last_error, last_counts
    from inventory_state`.execute(db);
  return rows[0]!;
}

/** When the last listing began, as text with full precision; null before the first. */
export async function readListedAt(db: Queryable): Promise<string | null> {
  const { rows } = await sql<{ listedAt: string | null }>`
    select listed_at::text as listed_at from inventory_state`.execute(db);
  return rows[0]?.listedAt ?? null;
}

/** `listedAt` is the start of the listing, by the database's clock. */
export async function writeSuccess(db: Queryable, counts: ImportCounts, listedAt: string): Promise<void> {
  await sql`update inventory_state set last_run_at = svc_now(), last_success_at = svc_now(), last_error = null,
    listed_at = ${listedAt}::timestamptz,
    last_counts = ${JSON.stringify(counts)}::jsonb`.execute(db);
}

export async function writeFailure(db: Queryable, error: string): Promise<void> {
  await sql`update inventory_state set last_run_at = svc_now(), last_error = ${error}`.execute(db);
}

/** A cluster in the inventory, with its live machines. */
export interface ClusterCount {
  clusterId: number;
  machines: number;
}

export async function listClusters(db: Queryable): Promise<ClusterCount[]> {
  const { rows } = await sql<ClusterCount>`
    select cluster_id, count(*) filter (where retired_at is null)::int as machines
    from inventory_vms group by cluster_id order by cluster_id`.execute(db);
  return rows;
}

/** Null: nothing of this connection's list was read. */
export async function readChangesCursor(db: Queryable, revision: number): Promise<string | null> {
  const { rows } = await sql<{ after: string | null }>`
    select changes_after as after from inventory_state where changes_revision = ${revision}`.execute(db);
  return rows[0]?.after ?? null;
}

export async function writeChangesCursor(trx: Queryable, revision: number, after: string): Promise<void> {
  await sql`update inventory_state set changes_after = ${after}, changes_revision = ${revision}`.execute(trx);
}

/** Adds those that are not there yet; returns how many. */
export async function addChanges(trx: Queryable, changes: readonly InventoryChange[]): Promise<number> {
  if (changes.length === 0) return 0;
  const { rows } = await sql`
    insert into vm_changes (id, cluster_id, vm_id, kind, occurred_at)
    select c.id, c.cluster_id, c.virtual_machine_id, c.kind, c.at
    from jsonb_to_recordset(${JSON.stringify(changes)}::jsonb)
      as c(id uuid, cluster_id bigint, virtual_machine_id bigint, kind text, at timestamptz)
    on conflict (id) do nothing returning 1`.execute(trx);
  return rows.length;
}

export interface NodeServer {
  clusterId: number;
  serverId: number;
  name: string;
  state: string;
  addresses: string[];
  /** The last import that listed the server, unix milliseconds. */
  seenAtMs: number;
  /** The oldest such import of its interfaces; null: it has none. */
  interfacesSeenAtMs: number | null;
}

/** The live servers of one node. */
export async function listNodeServers(
  db: Queryable,
  clusterIds: readonly number[],
  node: string,
  limit: number,
): Promise<NodeServer[]> {
  const { rows } = await sql<NodeServer>`
    select v.cluster_id, v.vm_id as server_id, v.name, v.state,
      (extract(epoch from v.last_seen_at) * 1000)::float8 as seen_at_ms,
      (extract(epoch from i.seen_at) * 1000)::float8 as interfaces_seen_at_ms, coalesce(i.addresses, '{}') as addresses
    from inventory_vms v
    left join lateral (
      select min(n.last_seen_at) as seen_at, array_agg(host(a) order by a) filter (where a is not null) as addresses
      from inventory_interfaces n left join lateral unnest(n.addresses) a on true
      where n.cluster_id = v.cluster_id and n.vm_id = v.vm_id and n.retired_at is null) i on true
    where v.cluster_id = any(${[...clusterIds]}::bigint[]) and v.node = ${node} and v.retired_at is null
    order by lower(v.name), v.vm_id limit ${limit}`.execute(db);
  return rows;
}
