/** Findings that operators ignore. */
import { sql } from 'kysely';
import { ratedSeverities } from '#contracts/findings.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** An ignore `i` that is in force. */
export const isOpenIgnore = sql`i.ended_at is null and (i.until is null or i.until > svc_now())`;

/**
 * Whether an ignore `i` is about a service `v`: the server, the address, the port and the software must be the same, so nothing is
 * inherited by another server, another allocation or another version (NET-2.6.5).
 */
export const isOfIgnore = sql`v.cluster_id = i.cluster_id and v.vm_id = i.vm_id and v.address = i.address
  and v.transport = i.transport and v.port = i.port and v.fingerprint = i.fingerprint`;

/** Whether a finding `f` of a service `v` is ignored. */
export const isIgnored = sql`exists (
  select from vulnerability_ignores i where ${isOfIgnore} and i.cve = f.cve and ${isOpenIgnore})`;

/** Columns that count findings `f` by their rating. */
export const countsByRating = sql.join([
  ...ratedSeverities.map(
    (rating) => sql`count(*) filter (where f.rating = ${sql.lit(rating)})::int as ${sql.ref(rating)}`,
  ),
  sql`count(*) filter (where f.rating is null or f.rating = 'none')::int as unrated`,
]);

/** The finding that is ignored. */
export interface IgnoredFinding {
  clusterId: number;
  serverId: number;
  address: string;
  transport: string;
  port: number;
  /** Of the software: another version is another finding. */
  fingerprint: string;
  cve: string;
}

export interface Ignore extends IgnoredFinding {
  id: number;
  siteId: number | null;
  reason: string;
  createdBy: string;
  createdAtMs: number;
  /** Null: without an end. */
  untilMs: number | null;
  /** Null while it is in force. */
  endedAtMs: number | null;
  /** Who ended it; `expired`, `reassigned`. */
  endedBy: string | null;
  /** It has reached its end; the next check ends it. */
  isOver: boolean;
  /** The server still has this software there. */
  isCurrent: boolean;
}

const ms = (column: string) => sql`floor(extract(epoch from ${sql.ref(column)}) * 1000)::float8`;
const ignoreRow = sql`i.id, s.site_id, i.cluster_id, i.vm_id as server_id, host(i.address) as address, i.transport,
  i.port, i.fingerprint, i.cve, i.reason, i.created_by, ${ms('i.created_at')} as created_at_ms,
  ${ms('i.until')} as until_ms, ${ms('i.ended_at')} as ended_at_ms, i.ended_by,
  coalesce(i.until <= svc_now(), false) as is_over,
  exists (select from vulnerability_services v where ${isOfIgnore}) as is_current`;
const ignoreTables = sql`vulnerability_ignores i
  left join vulnerability_servers s on s.cluster_id = i.cluster_id and s.vm_id = i.vm_id`;

/** Ignores of a server, those in force and the newest first. */
export async function listOfServer(
  db: Queryable,
  clusterId: number,
  serverId: number,
  limit: number,
): Promise<Ignore[]> {
  const { rows } = await sql<Ignore>`select ${ignoreRow} from ${ignoreTables}
    where i.cluster_id = ${clusterId} and i.vm_id = ${serverId}
    order by i.ended_at is not null, i.created_at desc, i.id desc limit ${limit}`.execute(db);
  return rows;
}

/** Of a site, or of all, those in force and the newest first. */
export async function listAll(db: Queryable, siteId: number | null, limit: number): Promise<Ignore[]> {
  const { rows } = await sql<Ignore>`select ${ignoreRow} from ${ignoreTables}
    where ${siteId}::bigint is null or s.site_id = ${siteId}::bigint
    order by i.ended_at is not null, i.created_at desc, i.id desc limit ${limit}`.execute(db);
  return rows;
}

export async function findIgnore(db: Queryable, id: number): Promise<Ignore | null> {
  const { rows } = await sql<Ignore>`select ${ignoreRow} from ${ignoreTables} where i.id = ${id}`.execute(db);
  return rows[0] ?? null;
}

/** Locks the finding's server; false where the server's software there has no such finding (any more). */
export async function lockFinding(trx: Queryable, one: IgnoredFinding): Promise<boolean> {
  await sql`select from vulnerability_servers where cluster_id = ${one.clusterId} and vm_id = ${one.serverId}
    for no key update`.execute(trx);
  const { rows } = await sql`
    select from vulnerability_services v join vulnerability_findings f on f.software_id = v.software_id and f.cve = ${one.cve}
    where v.cluster_id = ${one.clusterId} and v.vm_id = ${one.serverId} and v.address = ${one.address}::inet
      and v.transport = ${one.transport} and v.port = ${one.port} and v.fingerprint = ${one.fingerprint}
      and v.reason is null`.execute(trx);
  return rows.length === 1;
}

export interface NewIgnore extends IgnoredFinding {
  generation: string | null;
  reason: string;
  createdBy: string;
  untilMs: number | null;
}

/** Null where one is in force. */
export async function insertIgnore(trx: Queryable, one: NewIgnore): Promise<number | null> {
  const { rows } = await sql<{ id: number }>`
    insert into vulnerability_ignores (cluster_id, vm_id, address, transport, port, fingerprint, cve, generation, reason,
      created_by, until)
    values (${one.clusterId}, ${one.serverId}, ${one.address}::inet, ${one.transport}, ${one.port}, ${one.fingerprint},
      ${one.cve}, ${one.generation}, ${one.reason}, ${one.createdBy}, to_timestamp(${one.untilMs}::float8 / 1000))
    on conflict (cluster_id, vm_id, address, transport, port, fingerprint, cve) where ended_at is null do nothing
    returning id`.execute(trx);
  return rows[0]?.id ?? null;
}

export async function endIgnore(trx: Queryable, ids: readonly number[], by: string): Promise<boolean> {
  const { rows } = await sql`update vulnerability_ignores set ended_at = svc_now(), ended_by = ${by}
    where id = any(${[...ids]}::bigint[]) and ended_at is null returning 1`.execute(trx);
  return rows.length > 0;
}

type ServerKey = Pick<IgnoredFinding, 'clusterId' | 'serverId'>;

const isOfServers = (servers: readonly ServerKey[]) => sql`(i.cluster_id, i.vm_id) in (
  select * from unnest(${servers.map(({ clusterId }) => clusterId)}::bigint[],
    ${servers.map(({ serverId }) => serverId)}::bigint[]))`;

/** Ends what has reached its end. */
export async function endExpired(trx: Queryable, servers: readonly ServerKey[]): Promise<void> {
  await sql`update vulnerability_ignores i set ended_at = i.until, ended_by = 'expired'
    where ${isOfServers(servers)} and i.ended_at is null and i.until <= svc_now()`.execute(trx);
}

export interface OpenIgnore extends ServerKey {
  id: number;
  address: string;
  generation: string | null;
  createdAtMs: number;
}

export async function listOpen(trx: Queryable, servers: readonly ServerKey[]): Promise<OpenIgnore[]> {
  const { rows } = await sql<OpenIgnore>`
    select i.id, i.cluster_id, i.vm_id as server_id, host(i.address) as address, i.generation,
      ${ms('i.created_at')} as created_at_ms
    from vulnerability_ignores i where ${isOfServers(servers)} and ${isOpenIgnore}`.execute(trx);
  return rows;
}
