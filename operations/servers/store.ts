/** Statements on servers and their network interfaces. Owners are filtered here, never after the fact. */
import { sql } from 'kysely';
import type { Scope } from '#operations/views/scope.ts';
import {
  clusterLocation,
  nodeServers,
  type PowerState,
  type ProvisioningState,
  rfc3339,
  type ServerFailure,
  serverSizes,
} from '#operations/views/server-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { NewPlan } from './action-store.ts';

/** Living servers of each of these tenants. */
export async function countOfTenants(
  db: Queryable,
  tenantIds: readonly number[],
): Promise<Map<number, number>> {
  const { rows } = await sql<{ tenantId: number; count: number }>`
    select tenant_id, count(*) as count from servers
    where tenant_id = any(${[...tenantIds]}::bigint[]) and provisioning_state <> 'deleted'
    group by tenant_id`.execute(db);
  return new Map(rows.map((row) => [row.tenantId, row.count]));
}

export interface LockedServer {
  id: number;
  tenantId: number;
  name: string;
  /** From when on its guest can have done anything. */
  since: Date;
  isRunning: boolean;
}

/** Living servers of the scope in the order of their ids, their rows locked until the transaction ends. */
export async function lockLiving(
  tx: Queryable,
  scope: Scope,
  serverIds: readonly number[],
): Promise<LockedServer[]> {
  const isOwned = scope === 'all' ? sql`true` : sql`tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql<LockedServer>`
    select id, tenant_id, name, coalesce(provisioned_at, created_at) as since,
      provisioning_state = 'ready' and power_state = 'running' as is_running
    from servers where id = any(${[...serverIds]}::bigint[]) and provisioning_state <> 'deleted' and ${isOwned}
    order by id for no key update`.execute(tx);
  return rows;
}

/** What its network interfaces depend on. */
export interface AttachableServer {
  id: number;
  tenantId: number;
  locationId: number;
  provisioningState: ProvisioningState;
  hasPublicIp: boolean;
}

/** The server with its row locked until the transaction ends; null for a destroyed one and another's. */
export async function lockAttachable(
  tx: Queryable,
  scope: Scope,
  id: number,
): Promise<AttachableServer | null> {
  const owned = scope === 'all' ? sql`true` : sql`s.tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql<AttachableServer>`
    select s.id, s.tenant_id, c.location_id, s.provisioning_state, s.has_public_ip
    from servers s cross join lateral (${clusterLocation}) c
    where s.id = ${id} and ${owned} and s.provisioning_state <> 'deleted' for update of s`.execute(tx);
  return rows[0] ?? null;
}

/** Those of the ids that are not deleted. */
export async function listLiveIds(db: Queryable, serverIds: readonly number[]): Promise<Set<number>> {
  const { rows } = await sql<{ id: number }>`
    select id from servers where id = any(${[...serverIds]}::bigint[]) and provisioning_state <> 'deleted'`.execute(
    db,
  );
  return new Set(rows.map((row) => row.id));
}

export interface NewServer {
  id: number;
  tenantId: number;
  orderId: number;
  planId: number;
  imageId: number;
  clusterId: number;
  name: string;
  hostname: string;
  labels: Readonly<Record<string, string>>;
  sshKeys: readonly string[];
  userData: string | null;
  hourlyQuanta: number;
  monthlyCapQuanta: number;
  hasPublicIp: boolean;
}

/** A fresh id, drawn before the row exists, because name and MAC are made from it. */
export async function nextServerId(tx: Queryable): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    select nextval(pg_get_serial_sequence('servers', 'id')) as id`.execute(tx);
  return rows[0]!.id;
}

export async function insertServer(tx: Queryable, server: NewServer): Promise<void> {
  await sql`insert into servers (id, tenant_id, order_id, plan_id, image_id, cluster_id, name, hostname, labels,
      ssh_keys, user_data, hourly_quanta, monthly_cap_quanta, has_public_ip)
    overriding system value
    values (${server.id}, ${server.tenantId}, ${server.orderId}, ${server.planId}, ${server.imageId},
      ${server.clusterId}, ${server.name}, ${server.hostname}, ${JSON.stringify(server.labels)}::jsonb,
      ${JSON.stringify(server.sshKeys)}::jsonb, ${server.userData}, ${server.hourlyQuanta},
      ${server.monthlyCapQuanta}, ${server.hasPublicIp})`.execute(tx);
}

export async function insertInterface(tx: Queryable, serverId: number, macAddress: string): Promise<void> {
  await sql`insert into server_interfaces (server_id, mac_address) values (${serverId}, ${macAddress})`.execute(
    tx,
  );
}

/** Ends the server's network interfaces; returns their MACs. */
export async function releaseInterfaces(tx: Queryable, serverId: number): Promise<string[]> {
  const { rows } = await sql<{ mac: string }>`
    update server_interfaces set released_at = svc_now() where server_id = ${serverId} and released_at is null
    returning mac_address as mac`.execute(tx);
  return rows.map((row) => row.mac);
}

/** A server's own words, its row locked until the transaction ends; null for one that is not of the scope. */
export async function lockDescription(
  tx: Queryable,
  scope: Scope,
  serverId: number,
): Promise<{ name: string; hostname: string; labels: Record<string, string> } | null> {
  const isOwned = scope === 'all' ? sql`true` : sql`tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql<{ name: string; hostname: string; labels: Record<string, string> }>`
    select name, hostname, labels from servers
    where id = ${serverId} and provisioning_state <> 'deleted' and ${isOwned} for update`.execute(tx);
  return rows[0] ?? null;
}

export async function updateDescription(
  tx: Queryable,
  serverId: number,
  words: { name: string; hostname: string; labels: Readonly<Record<string, string>> },
): Promise<void> {
  await sql`update servers set name = ${words.name}, hostname = ${words.hostname},
      labels = ${JSON.stringify(words.labels)}::jsonb, updated_at = svc_now()
    where id = ${serverId}`.execute(tx);
}

export interface ProvisioningFacts {
  id: number;
  orderId: number;
  tenantId: number;
  planId: number;
  hourlyQuanta: number;
  clusterId: number;
  provisioningState: ProvisioningState;
  powerState: PowerState;
  isRescued: boolean;
  isoId: number | null;
  hostname: string;
  sshKeys: string[];
  userData: string | null;
  macAddress: string | null;
  imageSlug: string;
  vcpus: number;
  memoryMb: number;
  diskGb: number;
}

/** What provisioning needs, with the server's row locked until the transaction ends. */
export async function lockServer(tx: Queryable, serverId: number): Promise<ProvisioningFacts | null> {
  const { rows } = await sql<ProvisioningFacts>`
    select s.id, s.order_id, s.tenant_id, s.plan_id, s.hourly_quanta, s.cluster_id, s.provisioning_state,
      s.power_state, s.is_rescued, s.iso_id, s.hostname, s.ssh_keys, s.user_data,
      (select n.mac_address from server_interfaces n where n.server_id = s.id and n.released_at is null
        order by n.id limit 1) as mac_address, x.image_slug, x.vcpus, x.memory_mb, x.disk_gb
    from servers s cross join lateral (${serverSizes}) x
    where s.id = ${serverId} for update of s`.execute(tx);
  return rows[0] ?? null;
}

export interface StateChange {
  provisioningState?: ProvisioningState;
  powerState?: PowerState;
  node?: string;
  failure?: Omit<ServerFailure, 'at'> | null;
  /** The hypervisor's own words, for operators. */
  failureDetail?: string;
}

/** Moves a server to another state; the moments that follow from the new state are set with it. */
export async function updateState(tx: Queryable, serverId: number, change: StateChange): Promise<void> {
  const state = change.provisioningState ?? null;
  const failure = change.failure ? JSON.stringify(change.failure) : null;
  await sql`update servers set
      provisioning_state = coalesce(${state}, provisioning_state),
      power_state = coalesce(${change.powerState ?? null}, power_state),
      node = coalesce(${change.node ?? null}, node),
      failure = case when ${change.failure === undefined} then failure
        else ${failure}::jsonb || jsonb_build_object('at', ${sql.raw(rfc3339('svc_now()'))}) end,
      failure_detail = case when ${change.failure === undefined} then failure_detail
        else ${change.failureDetail?.slice(0, 2_000) ?? null} end,
      provisioned_at = case when ${state}::text = 'ready' then coalesce(provisioned_at, svc_now()) else provisioned_at end,
      deleting_at = case when ${state}::text = 'deleting' then coalesce(deleting_at, svc_now()) else deleting_at end,
      deleted_at = case when ${state}::text = 'deleted' then svc_now() else deleted_at end,
      status_changed_at = svc_now(), updated_at = svc_now()
    where id = ${serverId}`.execute(tx);
}

/** A new disk, which came from this image, or a new root password on the one that there is. */
export async function noteNewMachine(tx: Queryable, serverId: number, imageId: number | null): Promise<void> {
  await sql`update servers set image_id = coalesce(${imageId}, image_id), machine_version = machine_version + 1,
      updated_at = svc_now()
    where id = ${serverId}`.execute(tx);
}

export async function setRescue(tx: Queryable, serverId: number, isRescued: boolean): Promise<void> {
  await sql`update servers set is_rescued = ${isRescued}, machine_version = machine_version + 1, updated_at = svc_now()
    where id = ${serverId}`.execute(tx);
}

/** Null: none. */
export async function setIso(tx: Queryable, serverId: number, imageId: number | null): Promise<void> {
  await sql`update servers set iso_id = ${imageId}, machine_version = machine_version + 1, updated_at = svc_now()
    where id = ${serverId}`.execute(tx);
}

export async function setPlan(tx: Queryable, serverId: number, plan: NewPlan): Promise<void> {
  await sql`update servers set plan_id = ${plan.planId}, hourly_quanta = ${plan.hourlyQuanta},
      monthly_cap_quanta = ${plan.monthlyCapQuanta}, disk_gb = ${plan.diskGb}, updated_at = svc_now(),
      billed_quanta = greatest(billed_quanta, hourly_quanta, ${plan.hourlyQuanta})
    where id = ${serverId}`.execute(tx);
}

/** What the hypervisor said when provisioning failed. */
export async function findFailureDetail(db: Queryable, serverId: number): Promise<string | null> {
  const { rows } = await sql<{ detail: string | null }>`
    select failure_detail as detail from servers where id = ${serverId}`.execute(db);
  return rows[0]?.detail ?? null;
}

export async function setInterfacePlace(tx: Queryable, serverId: number, bridge: string): Promise<void> {
  await sql`update server_interfaces set bridge = ${bridge} where server_id = ${serverId} and released_at is null`.execute(
    tx,
  );
}

/**
 * Brings the ready servers of a node to what was seen there; one that was not seen is `unknown`. A state that has changed
 * since the look began, or is being acted upon, is left alone: the look is older than that.
 */
export async function applyObservation(
  db: Queryable,
  nodeId: number,
  since: Date,
  seen: readonly { serverId: number; powerState: PowerState }[],
): Promise<number> {
  const { rows } = await sql`
    with seen as (select * from unnest(${seen.map((one) => one.serverId)}::bigint[],
      ${seen.map((one) => one.powerState)}::text[]) as s (server_id, power_state))
    update servers s set power_state = coalesce(seen.power_state, 'unknown'),
      status_changed_at = svc_now(), updated_at = svc_now()
    from (${nodeServers(nodeId)}) r left join seen on seen.server_id = r.server_id
    where s.id = r.server_id
      and s.provisioning_state = 'ready' and s.status_changed_at < ${since}
      and s.power_state <> coalesce(seen.power_state, 'unknown')
      and not exists (select 1 from server_actions a where a.server_id = s.id and a.status in ('queued', 'running'))
    returning 1`.execute(db);
  return rows.length;
}

/** The ids of the servers that hold room on a node. */
export async function listServersOfNode(db: Queryable, nodeId: number): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`select server_id as id from (${nodeServers(nodeId)}) r`.execute(
    db,
  );
  return rows.map(({ id }) => id);
}

export interface DueHour {
  serverId: number;
  tenantId: number;
  hourlyQuanta: number;
  monthlyCapQuanta: number;
  /** What this server has cost in the month of the hour. */
  chargedQuanta: number;
  /** RFC 3339. */
  from: string;
}

/**
 * The next uncharged hour of each server that has one; rows that another worker holds are left to it. What a month has
 * cost so far is read once the rows are locked: the locking statement could still see what was before the worker
 * that held them last, and so charge beyond the cap. In the order of accounts, because their balances are taken in this
 * order: two workers wait for each other instead of deadlocking. Nothing is due from the moment at which the customer
 * asked for the server to be destroyed.
 */
export async function lockDueHours(
  tx: Queryable,
  { afterServerId, limit, serverId }: { afterServerId: number; limit: number; serverId?: number },
): Promise<DueHour[]> {
  const { rows: due } = await sql<{ id: number }>`
    select s.id from servers s
    where s.id > ${afterServerId} and s.id = coalesce(${serverId ?? null}::bigint, s.id) and s.provisioned_at is not null
      and coalesce(s.billed_until, s.provisioned_at) < coalesce(s.deleting_at, s.deleted_at, svc_now())
    order by s.id limit ${limit} for update of s skip locked`.execute(tx);
  const { rows } = await sql<DueHour>`
    select s.id as server_id, s.tenant_id, s.hourly_quanta, s.monthly_cap_quanta,
      ${sql.raw(rfc3339('coalesce(s.billed_until, s.provisioned_at)'))} as "from",
      coalesce((select charged_quanta from server_charges c where c.server_id = s.id
        and c.month = date_trunc('month', coalesce(s.billed_until, s.provisioned_at) at time zone 'utc')), 0) as charged_quanta
    from servers s where s.id = any(${due.map((row) => row.id)}::bigint[]) order by s.tenant_id, s.id`.execute(
    tx,
  );
  return rows;
}

/** The present hour, which is charged, at the highest price that it has had; null before the first one. */
export async function findChargedHour(tx: Queryable, serverId: number): Promise<DueHour | null> {
  const { rows } = await sql<DueHour>`
    select s.id as server_id, s.tenant_id, greatest(s.billed_quanta, s.hourly_quanta) as hourly_quanta,
      s.monthly_cap_quanta, ${sql.raw(rfc3339("(s.billed_until - interval '1 hour')"))} as "from",
      coalesce((select charged_quanta from server_charges c where c.server_id = s.id
        and c.month = date_trunc('month', (s.billed_until - interval '1 hour') at time zone 'utc')), 0) as charged_quanta
    from servers s where s.id = ${serverId} and s.billed_until > svc_now()`.execute(tx);
  return rows[0] ?? null;
}

/** Adds to what the month of this hour has cost. */
export async function addToMonth(tx: Queryable, hour: DueHour, amountQuanta: number): Promise<void> {
  await sql`insert into server_charges as kept (server_id, month, charged_quanta)
    values (${hour.serverId}, date_trunc('month', ${hour.from}::timestamptz at time zone 'utc'), ${amountQuanta})
    on conflict (server_id, month) do update set charged_quanta = kept.charged_quanta + excluded.charged_quanta`.execute(
    tx,
  );
}

export async function noteChargedHour(tx: Queryable, hour: DueHour, amountQuanta: number): Promise<void> {
  await addToMonth(tx, hour, amountQuanta);
  await sql`update servers set billed_until = coalesce(billed_until, provisioned_at) + interval '1 hour',
      billed_quanta = ${hour.hourlyQuanta}
    where id = ${hour.serverId}`.execute(tx);
}

/** Makes servers so many days older, for demos and tests. */
export async function backdateServers(tx: Queryable, ids: readonly number[], days: number): Promise<void> {
  await sql`update servers set created_at = created_at - make_interval(days => ${days}),
      provisioned_at = provisioned_at - make_interval(days => ${days})
    where id = any(${[...ids]}::bigint[])`.execute(tx);
}

/** What the running servers of a tenant will still cost until the month ends, each up to its cap. */
export async function sumRemainingMonth(db: Queryable, tenantId: number): Promise<number> {
  const { rows } = await sql<{ quanta: number }>`
    with present as (
      select svc_now() as now, date_trunc('month', svc_now() at time zone 'utc') as month)
    select coalesce(sum(least(
        s.hourly_quanta * ceil(greatest(0, extract(epoch from
          (present.month + interval '1 month') at time zone 'utc' - greatest(now, coalesce(s.billed_until, s.provisioned_at, now)))) / 3600),
        greatest(0, s.monthly_cap_quanta - coalesce(c.charged_quanta, 0)))), 0)::bigint as quanta
    from present cross join servers s
    left join server_charges c on c.server_id = s.id and c.month = present.month::date
    where s.tenant_id = ${tenantId} and s.provisioning_state in ('queued', 'provisioning', 'ready')`.execute(
    db,
  );
  return rows[0]!.quanta;
}

/** What these servers of the scope have cost in the present month, in quanta, by id; those without a charge are left out. */
export async function listMonthCharges(
  db: Queryable,
  scope: Scope,
  serverIds: readonly number[],
): Promise<Map<number, number>> {
  const isOwned = scope === 'all' ? sql`true` : sql`s.tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql<{ id: number; quanta: number }>`
    select s.id, c.charged_quanta as quanta from servers s join server_charges c on c.server_id = s.id
    where s.id = any(${[...serverIds]}::bigint[]) and ${isOwned}
      and c.month = date_trunc('month', svc_now() at time zone 'utc')::date`.execute(db);
  return new Map(rows.map(({ id, quanta }) => [id, quanta]));
}
