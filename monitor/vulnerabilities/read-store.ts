/** Assessments for pages. Names of servers are the inventory's (`nameServers` of the views). */

import { sql } from 'kysely';
import { ratedSeverities, type UnableReason } from '#contracts/findings.ts';
import type { ServiceEvidenceAt } from '#monitor/scans/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ApartFinding, Finding } from './assess-service.ts';
import { reasonOf } from './assessing/server-store.ts';
import { countsByRating, isIgnored, isOfIgnore, isOpenIgnore } from './ignores/store.ts';

const ms = (column: string) => sql`floor(extract(epoch from ${sql.ref(column)}) * 1000)::float8`;

/** Active findings by severity; `unrated`: none, or not rated. */
export interface FindingCounts {
  critical: number;
  high: number;
  medium: number;
  low: number;
  unrated: number;
}

/** A server with open ports. */
export interface AssessedServer extends FindingCounts {
  clusterId: number;
  serverId: number;
  siteId: number;
  services: number;
  /** Services that can't be assessed. */
  unable: number;
  ignored: number;
  /** Null: not assessed yet. */
  checkedAtMs: number | null;
  /** Age of the oldest records that were compared. */
  databaseAtMs: number | null;
  /** The newest scan evidence. */
  evidenceAtMs: number;
}

const serverRow = sql`s.cluster_id, s.vm_id as server_id, s.site_id, s.services, s.unable, s.ignored, s.critical,
  s.high, s.medium, s.low, s.unrated, ${ms('s.checked_at')} as checked_at_ms,
  ${ms('s.database_at')} as database_at_ms, ${ms('s.evidence_at')} as evidence_at_ms`;

/** Of a site, or of all (null): the most severe first. */
export async function listServers(
  db: Queryable,
  siteId: number | null,
  page: { offset: number; limit: number },
): Promise<AssessedServer[]> {
  const { rows } = await sql<AssessedServer>`
    select ${serverRow} from vulnerability_servers s
    where s.services > 0 and (${siteId}::bigint is null or s.site_id = ${siteId}::bigint)
    order by s.critical desc, s.high desc, s.medium desc, s.low desc, s.unrated desc, s.unable desc, s.cluster_id, s.vm_id
    limit ${page.limit} offset ${page.offset}`.execute(db);
  return rows;
}

export async function findServer(
  db: Queryable,
  clusterId: number,
  serverId: number,
): Promise<AssessedServer | null> {
  const { rows } = await sql<AssessedServer>`
    select ${serverRow} from vulnerability_servers s where s.cluster_id = ${clusterId}
      and s.vm_id = ${serverId}`.execute(db);
  return rows[0] ?? null;
}

/** Sums over servers with open ports. */
export interface AssessmentTotals extends FindingCounts {
  servers: number;
  /** Servers with an active finding. */
  affected: number;
  services: number;
  unable: number;
  ignored: number;
  /** Servers whose newest evidence or records were not compared yet. */
  waiting: number;
  /** The oldest check. */
  checkedAtMs: number | null;
}

export async function readTotals(db: Queryable, siteId: number | null): Promise<AssessmentTotals> {
  const { rows } = await sql<AssessmentTotals>`
    select count(*)::int as servers,
      count(*) filter (where s.critical + s.high + s.medium + s.low + s.unrated > 0)::int as affected,
      coalesce(sum(s.services), 0)::int as services, coalesce(sum(s.unable), 0)::int as unable,
      coalesce(sum(s.ignored), 0)::int as ignored, coalesce(sum(s.critical), 0)::int as critical,
      coalesce(sum(s.high), 0)::int as high, coalesce(sum(s.medium), 0)::int as medium, coalesce(sum(s.low), 0)::int as low,
      coalesce(sum(s.unrated), 0)::int as unrated, count(*) filter (where s.due_at <= svc_now())::int as waiting,
      floor(extract(epoch from min(s.checked_at)) * 1000)::float8 as checked_at_ms
    from vulnerability_servers s
    where s.services > 0 and (${siteId}::bigint is null or s.site_id = ${siteId}::bigint)`.execute(db);
  return rows[0]!;
}

/** An open port with its assessment. */
export interface AssessedService
  extends Omit<ServiceEvidenceAt, 'transport' | 'method' | 'confidence' | 'cpe'> {
  transport: string;
  /** Key of a known product. */
  productKey: string | null;
  /** Names the findings; of a package those of its original, which are never active. */
  softwareId: number | null;
  /** Null: assessed. */
  reason: UnableReason | null;
  databaseAtMs: number | null;
  /** Findings that are not listed. */
  leftOut: number;
  /** A package, by the security tracker of its distribution. */
  isJudged: boolean;
}

const serviceRow = sql`v.cluster_id, v.vm_id as server_id, host(v.address) as address, v.transport, v.port, v.scan_id,
  ${ms('v.first_observed_at')} as first_observed_at_ms, ${ms('v.observed_at')} as observed_at_ms,
  ${ms('v.common_at')} as common_at_ms, ${ms('v.full_at')} as full_at_ms, v.service, v.product, v.version,
  v.extra_info, v.fingerprint, v.product_key, v.software_id, ${reasonOf} as reason,
  ${ms('w.database_at')} as database_at_ms, coalesce(w.left_out, 0) as left_out,
  coalesce(w.is_judged, false) as is_judged`;
const serviceTables = sql`vulnerability_services v left join vulnerability_software w on w.id = v.software_id`;

/** Of a server, by address and port. */
export async function listServices(
  db: Queryable,
  clusterId: number,
  serverId: number,
): Promise<AssessedService[]> {
  const { rows } = await sql<AssessedService>`
    select ${serviceRow} from ${serviceTables} where v.cluster_id = ${clusterId} and v.vm_id = ${serverId}
    order by v.address, v.transport, v.port`.execute(db);
  return rows;
}

/** A finding of a software. */
export interface SoftwareFinding {
  softwareId: number;
  finding: Finding;
}

/** The most severe first. */
export async function listFindings(
  db: Queryable,
  softwareIds: readonly number[],
): Promise<SoftwareFinding[]> {
  const { rows } = await sql<SoftwareFinding>`
    select f.software_id, f.finding from vulnerability_findings f
    where f.software_id = any(${[...softwareIds]}::bigint[]) order by f.software_id, f.place`.execute(db);
  return rows;
}

/** Findings of a software that are shown apart, the most severe first. */
export async function listApart(
  db: Queryable,
  softwareIds: readonly number[],
): Promise<Map<number, readonly ApartFinding[]>> {
  const { rows } = await sql<{ id: number; apart: ApartFinding[] }>`
    select id, apart from vulnerability_software where id = any(${[...softwareIds]}::bigint[])`.execute(db);
  return new Map(rows.map(({ id, apart }) => [id, apart]));
}

/** A record of the database with what it touches. */
export interface TouchingCve {
  cve: string;
  finding: Finding;
  /** Keys of products. */
  products: string[];
  /** Assessed services that it touches, those that are ignored included. */
  services: number;
  ignored: number;
}

/** Of a site, or of all (null): known exploited ones and the most severe first. */
export async function listCves(
  db: Queryable,
  siteId: number | null,
  page: { offset: number; limit: number },
): Promise<TouchingCve[]> {
  const { rows } = await sql<TouchingCve>`
    with used as (
      select u.software_id, sum(u.services) as services from vulnerability_uses u
      where ${siteId}::bigint is null or u.site_id = ${siteId}::bigint group by 1),
    touched as (
      select f.cve, sum(u.services)::int as services, array_agg(distinct w.product) as products,
        min(f.software_id) as software_id, bool_or(f.is_known_exploited) as is_known_exploited, max(f.score) as score
      from used u join vulnerability_findings f on f.software_id = u.software_id
      join vulnerability_software w on w.id = u.software_id
      group by f.cve order by 5 desc, 6 desc nulls last, 2 desc, 1 limit ${page.limit} offset ${page.offset})
    select t.cve, t.products, t.services, f.finding - 'package' as finding, (
      select count(*)::int from vulnerability_ignores i join vulnerability_services v on ${isOfIgnore}
      join vulnerability_servers s on s.cluster_id = v.cluster_id and s.vm_id = v.vm_id
      where i.cve = t.cve and ${isOpenIgnore} and v.reason is null
        and exists (select from vulnerability_findings o where o.software_id = v.software_id and o.cve = t.cve)
        and (${siteId}::bigint is null or s.site_id = ${siteId}::bigint)) as ignored
    from touched t join vulnerability_findings f on f.software_id = t.software_id and f.cve = t.cve
    order by t.is_known_exploited desc, t.score desc nulls last, t.services desc, t.cve`.execute(db);
  return rows;
}

/** A service that a CVE touches. */
export interface TouchedService extends AssessedService {
  isIgnored: boolean;
}

/** Assessed services that a CVE touches, by server; of a site, or of all (null). */
export async function listTouched(
  db: Queryable,
  cve: string,
  siteId: number | null,
  page: { offset: number; limit: number },
): Promise<TouchedService[]> {
  const { rows } = await sql<TouchedService>`
    select ${serviceRow}, ${isIgnored} as is_ignored
    from vulnerability_findings f join vulnerability_services v on v.software_id = f.software_id
    join vulnerability_software w on w.id = v.software_id
    join vulnerability_servers s on s.cluster_id = v.cluster_id and s.vm_id = v.vm_id
    where f.cve = ${cve} and v.reason is null and (${siteId}::bigint is null or s.site_id = ${siteId}::bigint)
    order by v.cluster_id, v.vm_id, v.address, v.transport, v.port
    limit ${page.limit} offset ${page.offset}`.execute(db);
  return rows;
}

/** A finding by its number, of any software that has it, without what a distribution says of one package. */
export async function findFinding(db: Queryable, cve: string): Promise<Finding | null> {
  const { rows } = await sql<{ finding: Finding }>`
    select f.finding - 'package' as finding from vulnerability_findings f
    where f.cve = ${cve} order by f.software_id limit 1`.execute(db);
  return rows[0]?.finding ?? null;
}

/** An open port that was assessed. */
export interface PortFindings extends FindingCounts {
  clusterId: number;
  serverId: number;
  address: string;
  transport: string;
  port: number;
  /** Among the counts of active ones they are not. */
  ignored: number;
  /** It can't be assessed, so it has none. */
  isUnable: boolean;
}

const counted = [...ratedSeverities, 'unrated'];

/** Of these servers. */
export async function listPortFindings(
  db: Queryable,
  servers: readonly { clusterId: number; serverId: number }[],
): Promise<PortFindings[]> {
  const clusters = servers.map(({ clusterId }) => clusterId);
  const vms = servers.map(({ serverId }) => serverId);
  // Versions are counted as they are stored; only findings that an ignore names are looked at one by one.
  const { rows } = await sql<PortFindings>`
    select v.cluster_id, v.vm_id as server_id, host(v.address) as address, v.transport, v.port,
      v.reason is not null as is_unable,
      ${sql.join(
        counted.map(
          (name) =>
            sql`case when v.reason is null then coalesce(${sql.ref(`w.${name}`)}, 0) - ${sql.ref(`g.${name}`)} else 0 end as ${sql.ref(name)}`,
        ),
      )},
      case when v.reason is null then ${sql.join(
        counted.map((name) => sql.ref(`g.${name}`)),
        sql` + `,
      )} else 0 end as ignored
    from unnest(${clusters}::bigint[], ${vms}::bigint[]) as wanted(cluster_id, vm_id)
    join vulnerability_services v on v.cluster_id = wanted.cluster_id and v.vm_id = wanted.vm_id
    left join vulnerability_software w on w.id = v.software_id
    cross join lateral (
      select ${countsByRating}
      from vulnerability_findings f
      where f.software_id = v.software_id
        and f.cve in (select i.cve from vulnerability_ignores i where i.cluster_id = v.cluster_id and i.vm_id = v.vm_id)
          and ${isIgnored}) g`.execute(db);
  return rows;
}
