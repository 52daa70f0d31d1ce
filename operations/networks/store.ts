/** Statements on networks themselves. Owners are filtered here, never after the fact. */
import { sql } from 'kysely';
import { ownsNetwork } from '#operations/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Scope } from './authorise.ts';
import type { Network } from './network.ts';

export {
  countNetworks,
  findNetwork,
  type LabelCondition,
  listNetworks,
  type NetworkFilter,
} from '#operations/views/index.ts';

export async function countOfTenants(
  db: Queryable,
  tenantIds: readonly number[],
): Promise<Map<number, number>> {
  const { rows } = await sql<{ tenantId: number; count: number }>`
    select tenant_id as "tenantId", count(*) as count from private_networks
    where tenant_id = any(${[...tenantIds]}::bigint[]) group by tenant_id`.execute(db);
  return new Map(rows.map((row) => [row.tenantId, row.count]));
}

/**
 * The blocks that an account has, with every other creation of this account held back until the transaction ends: so
 * neither the cap nor the free block is decided twice on one state.
 */
export async function lockBlocks(tx: Queryable, tenantId: number): Promise<string[]> {
  await sql`select pg_advisory_xact_lock(7318070, ${tenantId}::int)`.execute(tx);
  const { rows } = await sql<{ cidr: string }>`
    select cidr::text as cidr from private_networks where tenant_id = ${tenantId} order by cidr`.execute(tx);
  return rows.map((row) => row.cidr);
}

export async function insertNetwork(
  tx: Queryable,
  network: {
    tenantId: number;
    locationId: number;
    name: string;
    description: string | null;
    cidr: string;
    labels: Readonly<Record<string, string>>;
  },
): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into private_networks (tenant_id, location_id, name, description, cidr, labels)
    values (${network.tenantId}, ${network.locationId}, ${network.name}, ${network.description},
      ${network.cidr}::cidr, ${JSON.stringify(network.labels)}::jsonb)
    returning id`.execute(tx);
  return rows[0]!.id;
}

export interface LockedNetwork {
  id: number;
  tenantId: number;
  name: string;
  cidr: string;
  locationId: number;
  labels: Record<string, string>;
  syncState: Network['syncState'];
}

/** The network with its row locked: other attachments, changes and deletions wait. */
export async function lockNetwork(tx: Queryable, scope: Scope, id: number): Promise<LockedNetwork | null> {
  const { rows } = await sql<LockedNetwork>`
    select n.id, n.tenant_id as "tenantId", n.name, n.cidr::text as cidr, n.location_id as "locationId", n.labels,
      n.sync_state as "syncState"
    from private_networks n where n.id = ${id} and ${ownsNetwork(scope)} for update`.execute(tx);
  return rows[0] ?? null;
}

export async function updateNetwork(
  tx: Queryable,
  id: number,
  change: { name?: string; description?: string | null; labels?: Readonly<Record<string, string>> },
): Promise<void> {
  await sql`update private_networks set
      name = coalesce(${change.name ?? null}, name),
      description = case when ${change.description === undefined} then description
        else ${change.description ?? null} end,
      labels = coalesce(${change.labels ? JSON.stringify(change.labels) : null}::jsonb, labels),
      updated_at = svc_now()
    where id = ${id}`.execute(tx);
}

export async function deleteNetwork(tx: Queryable, id: number): Promise<void> {
  await sql`delete from private_networks where id = ${id}`.execute(tx);
}

/** Notes the wish; true when a run has to be queued for it, false when one waits already. */
export async function wantSync(tx: Queryable, id: number): Promise<boolean> {
  const { rows } = await sql<{ wasPending: boolean }>`
    update private_networks n set sync_state = 'pending', sync_wanted = n.sync_wanted + 1
    from (select id, sync_state = 'pending' as was_pending from private_networks where id = ${id} for update) before
    where n.id = before.id returning before.was_pending as "wasPending"`.execute(tx);
  return rows[0]?.wasPending === false;
}

/** The number of the newest wish; null when the network is gone. */
export async function findSyncWanted(db: Queryable, id: number): Promise<number | null> {
  const { rows } = await sql<{ wanted: number }>`
    select sync_wanted as wanted from private_networks where id = ${id}`.execute(db);
  return rows[0]?.wanted ?? null;
}

/** Ends the wish of this number and returns whose network it is; null when there is a newer wish, which stays pending. */
export async function finishSync(
  tx: Queryable,
  id: number,
  wanted: number,
  error: { code: string; message: string } | null,
): Promise<number | null> {
  const { rows } = await sql<{ tenantId: number }>`
    update private_networks set sync_state = ${error === null ? 'synced' : 'error'},
      sync_error = ${error === null ? null : JSON.stringify(error)}::jsonb
        || jsonb_build_object('at', to_char(svc_now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')),
      last_synced_at = case when ${error === null} then svc_now() else last_synced_at end
    where id = ${id} and sync_wanted = ${wanted} returning tenant_id as "tenantId"`.execute(tx);
  return rows[0]?.tenantId ?? null;
}
