/**
 * Reverse names: on the allocation, so that each ends with its generation. The state of the record at the DNS server is beside it, with
 * a version: the job always writes the newest name.
 */
import { sql } from 'kysely';
import type { Scope } from '#operations/views/scope.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { EndedGeneration } from './reserved-store.ts';

/** The reverse name of an address that a server has. */
export interface ReverseName {
  clusterId: number;
  serverId: number;
  tenantId: number;
  address: string;
  name: string | null;
  status: 'applied' | 'pending' | 'failed';
  changedAt: Date | null;
}

/** What was asked for before the address had this holder is not theirs to see. */
const isOfHolder = sql`w.changed_at >= a.assigned_at`;

const select = sql`
  select a.cluster_id, a.server_id, a.tenant_id, host(a.address) as address, a.reverse_dns as name,
    coalesce(w.status, 'applied') as status, w.changed_at
  from allocations a left join reverse_dns_writes w on w.cluster_id = a.cluster_id and w.address = a.address
    and ${isOfHolder}`;

/** Of an address that a server of the scope has now; null for every other. */
export async function findReverseName(
  db: Queryable,
  scope: Scope,
  of: { serverId: number; address: string },
  isLocked = false,
): Promise<ReverseName | null> {
  const isOwned = scope === 'all' ? sql`true` : sql`a.tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql<ReverseName>`
    ${select} where a.server_id = ${of.serverId} and a.address = ${of.address}::inet and a.released_at is null
      and ${isOwned} ${isLocked ? sql`for update of a` : sql``}`.execute(db);
  return rows[0] ?? null;
}

/** Names the address, whose row is locked, and queues the job that writes the record. */
export async function setReverseName(tx: Queryable, of: ReverseName, name: string | null): Promise<void> {
  await sql`update allocations set reverse_dns = ${name}
    where cluster_id = ${of.clusterId} and address = ${of.address}::inet and released_at is null`.execute(tx);
  await queueWrite(tx, of);
}

/** Queues the removal of the records of these addresses, where they have one. */
export async function forgetNames(tx: Queryable, ended: readonly EndedGeneration[]): Promise<void> {
  for (const { isNamed, ...of } of ended) if (isNamed) await queueWrite(tx, of);
}

/** Queues writing the present name of the address, or removing its record. */
async function queueWrite(tx: Queryable, of: { clusterId: number; address: string }): Promise<void> {
  await sql`insert into reverse_dns_writes as kept (cluster_id, address) values (${of.clusterId}, ${of.address}::inet)
    on conflict (cluster_id, address) do update set version = kept.version + 1, status = 'pending',
      changed_at = svc_now()`.execute(tx);
  await enqueueJob(tx, 'reverse_dns.write', { cluster_id: of.clusterId, address: of.address });
}

/**
 * The name that the DNS server is to have, its version, and the server whose owner asked for it; null for an address that was never
 * named.
 */
export async function findNameToWrite(
  db: Queryable,
  of: { clusterId: number; address: string },
): Promise<{ name: string | null; version: number; serverId: number | null } | null> {
  const { rows } = await sql<{ name: string | null; version: number; serverId: number | null }>`
    select w.version, a.reverse_dns as name, case when ${isOfHolder} then a.server_id end as server_id
    from reverse_dns_writes w left join allocations a
      on a.cluster_id = w.cluster_id and a.address = w.address and a.released_at is null
    where w.cluster_id = ${of.clusterId} and w.address = ${of.address}::inet`.execute(db);
  return rows[0] ?? null;
}

/** False when there is a newer version, which stays as it is. */
export async function noteNameWritten(
  tx: Queryable,
  of: { clusterId: number; address: string },
  version: number,
  status: 'applied' | 'failed',
): Promise<boolean> {
  const { rows } = await sql`update reverse_dns_writes set status = ${status}
    where cluster_id = ${of.clusterId} and address = ${of.address}::inet and version = ${version} returning 1`.execute(
    tx,
  );
  return rows.length === 1;
}
