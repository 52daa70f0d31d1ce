/** Assessed services of servers, and the counts of each server. */

import { sql } from 'kysely';
import { ratedSeverities } from '#contracts/findings.ts';
import { kept } from '#contracts/retention.ts';
import type { ScannedServer } from '#monitor/scans/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { countsByRating, isOfIgnore, isOpenIgnore } from '../ignores/store.ts';
import type { AssessedService } from '../read-store.ts';

export type ServerKey = Pick<DueServer, 'clusterId' | 'serverId'>;

const pageOf = (servers: readonly ServerKey[]) => sql`
  unnest(${servers.map(({ clusterId }) => clusterId)}::bigint[], ${servers.map(({ serverId }) => serverId)}::bigint[])
    as page(cluster_id, vm_id)`;
const isOfPage = (alias: string, servers: readonly ServerKey[]) =>
  sql`(${sql.ref(`${alias}.cluster_id`)}, ${sql.ref(`${alias}.vm_id`)}) in (select * from ${pageOf(servers)})`;

/** A service as it is stored; times in milliseconds since 1970. */
export interface ServiceRow
  extends Omit<AssessedService, 'reason' | 'databaseAtMs' | 'leftOut' | 'isJudged'> {
  reason: string | null;
}

/** Puts the services of these servers in the place of those before; what is the same is not written again. */
export async function writeServices(
  trx: Queryable,
  servers: readonly ServerKey[],
  services: readonly ServiceRow[],
): Promise<void> {
  const given = sql`select g."clusterId" as cluster_id, g."serverId" as vm_id, g.address, g.transport, g.port,
      g."scanId" as scan_id, to_timestamp(g."firstObservedAtMs" / 1000) as first_observed_at,
      to_timestamp(g."observedAtMs" / 1000) as observed_at, to_timestamp(g."commonAtMs" / 1000) as common_at,
      to_timestamp(g."fullAtMs" / 1000) as full_at, g.service, g.product, g.version, g."extraInfo" as extra_info, g.fingerprint,
      g."softwareId" as software_id, g."productKey" as product_key, g.reason
    from jsonb_to_recordset(${JSON.stringify(services)}::jsonb) as g("clusterId" bigint, "serverId" bigint, address inet,
      transport text, port integer, "scanId" uuid, "firstObservedAtMs" float8, "observedAtMs" float8, "commonAtMs" float8,
      "fullAtMs" float8, service text, product text, version text, "extraInfo" text, fingerprint text,
      "softwareId" bigint, "productKey" text, reason text)`;
  await sql`
    with given as (${given}),
    gone as (delete from vulnerability_services v where ${isOfPage('v', servers)} and not exists (
      select from given g where g.cluster_id = v.cluster_id and g.vm_id = v.vm_id and g.address = v.address
        and g.transport = v.transport and g.port = v.port))
    insert into vulnerability_services as held (cluster_id, vm_id, address, transport, port, scan_id, first_observed_at,
      observed_at, common_at, full_at, service, product, version, extra_info, fingerprint, software_id, product_key, reason)
    select cluster_id, vm_id, address, transport, port, scan_id, first_observed_at, observed_at, common_at, full_at, service,
      product, version, extra_info, fingerprint, software_id, product_key, reason
    from given order by cluster_id, vm_id, address, transport, port
    on conflict (cluster_id, vm_id, address, transport, port) do update set scan_id = excluded.scan_id,
      first_observed_at = excluded.first_observed_at, observed_at = excluded.observed_at, common_at = excluded.common_at,
      full_at = excluded.full_at, service = excluded.service, product = excluded.product, version = excluded.version,
      extra_info = excluded.extra_info, fingerprint = excluded.fingerprint, software_id = excluded.software_id,
      product_key = excluded.product_key, reason = excluded.reason
    where (held.scan_id, held.first_observed_at, held.observed_at, held.common_at, held.full_at, held.service, held.extra_info,
        held.fingerprint, held.software_id, held.product_key, held.reason)
      is distinct from (excluded.scan_id, excluded.first_observed_at, excluded.observed_at, excluded.common_at,
        excluded.full_at, excluded.service, excluded.extra_info, excluded.fingerprint, excluded.software_id,
        excluded.product_key, excluded.reason)`.execute(trx);
  await notePlaces(trx, servers);
}

/** A service with severe findings, as the check before stored it. */
export interface SevereService extends ServerKey, Pick<ServiceRow, 'address' | 'transport' | 'port'> {
  /** Its evidence is no evidence any more. */
  isExpired: boolean;
}

export async function listSevere(trx: Queryable, servers: readonly ServerKey[]): Promise<SevereService[]> {
  const { rows } = await sql<SevereService>`
    select v.cluster_id, v.vm_id as server_id, host(v.address) as address, v.transport, v.port,
      v.observed_at <= svc_now() - ${sql.lit(kept.scans)}::interval as is_expired
    from vulnerability_services v join vulnerability_software w on w.id = v.software_id and w.severe > 0
    where ${isOfPage('v', servers)} and v.reason is null`.execute(trx);
  return rows;
}

/** The addresses that operations is told about, and software that is not there any more. */
async function notePlaces(trx: Queryable, servers: readonly ServerKey[]): Promise<void> {
  await sql`
    insert into vulnerability_projections as held (cluster_id, vm_id, address, scan_id, evidence_at)
    select distinct on (v.cluster_id, v.vm_id, v.address) v.cluster_id, v.vm_id, v.address, v.scan_id, v.observed_at
    from vulnerability_services v where ${isOfPage('v', servers)}
    order by v.cluster_id, v.vm_id, v.address, v.observed_at desc, v.scan_id
    on conflict (cluster_id, vm_id, address) do update set scan_id = excluded.scan_id, evidence_at = excluded.evidence_at
    where (held.scan_id, held.evidence_at)
    is distinct from (excluded.scan_id, excluded.evidence_at)`.execute(trx);
  await sql`
    update vulnerability_noted n set gone_at = case when n.gone_at is null then svc_now() end
    where ${isOfPage('n', servers)} and (n.gone_at is null) <> exists (
      select from vulnerability_services v where v.cluster_id = n.cluster_id and v.vm_id = n.vm_id
        and v.transport = n.transport and v.port = n.port and v.fingerprint = n.fingerprint)`.execute(trx);
}

/** Why a service is not assessed: by its evidence, or because the records of its product were never fetched. */
export const reasonOf = sql`coalesce(v.reason, case when w.database_at is null then 'no_database' end)`;

const sums = sql.join(
  [...ratedSeverities, 'unrated'].map(
    (rating) =>
      sql`coalesce(sum(${sql.ref(`w.${rating}`)}) filter (where v.reason is null), 0)::int as ${sql.ref(rating)}`,
  ),
);
const activeOf = sql.join(
  [...ratedSeverities, 'unrated'].map(
    (rating) =>
      sql`${sql.ref(rating)} = coalesce(${sql.ref(`c.${rating}`)}, 0) - coalesce(${sql.ref(`i.${rating}`)}, 0)`,
  ),
);

/**
 * Counts the findings of these servers, each part once for all of them, and notes the check. Its time is later than that of every check before, so that what
 * operations is told has an order.
 */
export async function countServers(trx: Queryable, servers: readonly ServerKey[]): Promise<void> {
  await sql`
    with counted as materialized (
      select v.cluster_id, v.vm_id, count(*)::int as services, count(*) filter (where ${reasonOf} is not null)::int as unable,
        ${sums}, min(w.database_at) as database_at, max(v.observed_at) as evidence_at,
        min(v.observed_at) + ${sql.lit(kept.scans)}::interval as expires_at
      from ${pageOf(servers)}
      join vulnerability_services v on v.cluster_id = page.cluster_id and v.vm_id = page.vm_id
      left join vulnerability_software w on w.id = v.software_id group by 1, 2),
    ignored as materialized (
      select v.cluster_id, v.vm_id, count(*)::int as ignored, ${countsByRating}
      from ${pageOf(servers)}
      join vulnerability_ignores i on i.cluster_id = page.cluster_id and i.vm_id = page.vm_id and ${isOpenIgnore}
      join vulnerability_services v on ${isOfIgnore} and v.reason is null
      join vulnerability_findings f on f.software_id = v.software_id and f.cve = i.cve group by 1, 2),
    ending as materialized (
      select i.cluster_id, i.vm_id, min(i.until) as until from ${pageOf(servers)}
      join vulnerability_ignores i on i.cluster_id = page.cluster_id and i.vm_id = page.vm_id where ${isOpenIgnore} group by 1, 2)
    update vulnerability_servers s set services = coalesce(c.services, 0), unable = coalesce(c.unable, 0),
      ignored = coalesce(i.ignored, 0), ${activeOf}, database_at = c.database_at,
      evidence_at = coalesce(c.evidence_at, s.evidence_at), expires_at = coalesce(c.expires_at, 'infinity'),
      checked_at = greatest(date_trunc('milliseconds', svc_now()), s.checked_at + interval '1 millisecond'),
      due_at = case when s.evidence = s.assessed then least(c.expires_at, e.until, 'infinity') else s.due_at end
    from ${pageOf(servers)}
    left join counted c on c.cluster_id = page.cluster_id and c.vm_id = page.vm_id
    left join ignored i on i.cluster_id = page.cluster_id and i.vm_id = page.vm_id
    left join ending e on e.cluster_id = page.cluster_id and e.vm_id = page.vm_id
    where s.cluster_id = page.cluster_id and s.vm_id = page.vm_id`.execute(trx);
}

/** Locks the servers, in their order, so that two writers follow one another; notes which evidence and rules these are. */
export async function noteAssessed(trx: Queryable, servers: readonly DueServer[], rules: number) {
  await sql`select from vulnerability_servers s where ${isOfPage('s', servers)}
    order by s.cluster_id, s.vm_id for no key update`.execute(trx);
  const given = servers.map(({ clusterId, serverId, evidence }) => ({ clusterId, serverId, evidence }));
  await sql`
    update vulnerability_servers s set assessed = g.evidence, rules = ${rules}
    from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g("clusterId" bigint, "serverId" bigint, evidence bigint)
    where s.cluster_id = g."clusterId" and s.vm_id = g."serverId"`.execute(trx);
}

/** A server whose turn it is. */
export interface DueServer {
  clusterId: number;
  serverId: number;
  siteId: number;
  /** How many results of scans there were when it was read. */
  evidence: number;
  /** Its evidence changed, or our rules did; else only what the records say. */
  isChanged: boolean;
}

/** New evidence of a server, in the transaction of its result. */
export async function noteEvidence(trx: Queryable, { siteId, clusterId, serverId }: ScannedServer) {
  await sql`
    insert into vulnerability_servers as held (cluster_id, vm_id, site_id) values (${clusterId}, ${serverId}, ${siteId})
    on conflict (cluster_id, vm_id) do update set evidence = held.evidence + 1, site_id = excluded.site_id,
      due_at = least(held.due_at, svc_now())`.execute(trx);
}

/** Those that wait longest first, so that none waits for ever. */
export async function listDue(db: Queryable, rules: number, limit: number): Promise<DueServer[]> {
  const { rows } = await sql<DueServer>`
    select cluster_id, vm_id as server_id, site_id, evidence,
      evidence <> assessed or rules <> ${rules} or expires_at <= svc_now() as is_changed
    from vulnerability_servers where due_at <= svc_now() or rules <> ${rules}
    order by due_at, cluster_id, vm_id limit ${limit}`.execute(db);
  return rows;
}

/** A server that could not be assessed waits, and then is assessed whole; the others go on. */
export async function postpone(
  trx: Queryable,
  { clusterId, serverId }: DueServer,
  rules: number,
  seconds: number,
): Promise<void> {
  await sql`update vulnerability_servers set due_at = svc_now() + make_interval(secs => ${seconds}), rules = ${rules},
    assessed = -1 where cluster_id = ${clusterId} and vm_id = ${serverId}`.execute(trx);
}
