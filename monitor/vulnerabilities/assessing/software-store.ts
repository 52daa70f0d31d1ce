/** What the records say of products in one version, for all services that run them. */
import { sql } from 'kysely';
import { ratedSeverities } from '#contracts/findings.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Finding, FoundList } from '../assess-service.ts';
import type { SoftwareName } from './bind-services.ts';

export interface Software extends SoftwareName {
  id: number;
  /** Of its stored findings. */
  digest: string;
  /** A package that the tracker of its distribution knows. */
  isJudged: boolean;
}

const given = (names: readonly SoftwareName[]) =>
  sql`jsonb_to_recordset(${JSON.stringify(names)}::jsonb) as g(product text, version text)`;

/** What is new of this software is stored, not compared yet. */
export async function ensureSoftware(db: Queryable, names: readonly SoftwareName[]): Promise<void> {
  if (names.length === 0) return;
  await sql`insert into vulnerability_software (product, version)
    select g.product, g.version from ${given(names)} where not exists (
      select from vulnerability_software s where s.product = g.product and s.version = g.version)
    order by 1, 2 on conflict do nothing`.execute(db);
}

export async function listSoftware(db: Queryable, names: readonly SoftwareName[]): Promise<Software[]> {
  if (names.length === 0) return [];
  const { rows } = await sql<Software>`
    select s.id, s.product, s.version, s.digest, s.is_judged from ${given(names)}
    join vulnerability_software s on s.product = g.product and s.version = g.version`.execute(db);
  return rows;
}

/** Software that was not compared with the present records by the present rules, product by product. */
export async function listStale(db: Queryable, rules: number, limit: number): Promise<Software[]> {
  const { rows } = await sql<Software>`
    select s.id, s.product, s.version, s.digest, s.is_judged from vulnerability_software s
    left join vulnerability_products p on p.product = s.product
    where s.rules <> ${rules} or s.revision <> coalesce(p.revision, 0)
    order by s.product, s.id limit ${limit}`.execute(db);
  return rows;
}

/** What comparing one product's records found. */
export interface SoftwareAssessment extends FoundList {
  id: number;
  digest: string;
  /** Other findings than those that are stored. */
  isChanged: boolean;
  wasJudged: boolean;
}

export interface ComparedRecords {
  rules: number;
  /** Severities that operators are alerted of. */
  severe: readonly string[];
  revision: number;
  refreshedAtMs: number | null;
}

/** Writes what changed, and has the servers visited that run this software. */
export async function writeVerdicts(
  trx: Queryable,
  verdicts: readonly SoftwareAssessment[],
  { rules, severe, revision, refreshedAtMs }: ComparedRecords,
): Promise<void> {
  const ids = verdicts.map(({ id }) => id);
  await turnReasons(trx, verdicts);
  await writeFindings(
    trx,
    verdicts.filter(({ isChanged }) => isChanged),
  );
  await sql`
    update vulnerability_software s set rules = ${rules}, revision = ${revision}, checked_at = svc_now(),
      database_at = to_timestamp(${refreshedAtMs}::float8 / 1000), critical = g.critical, high = g.high, medium = g.medium,
      low = g.low, unrated = g.unrated, left_out = g.left_out, digest = g.digest, apart = g.apart,
      is_judged = g.is_judged
    from jsonb_to_recordset(${JSON.stringify(verdicts.map(countVerdict))}::jsonb) as g(id bigint, critical integer,
      high integer, medium integer, low integer, unrated integer, left_out integer, digest text, apart jsonb, is_judged boolean)
    where s.id = g.id`.execute(trx);
  await numberSevere(trx, ids, severe);
  await sql`
    update vulnerability_servers s set due_at = svc_now() where s.due_at > svc_now() and (s.cluster_id, s.vm_id) in (
      select v.cluster_id, v.vm_id from vulnerability_services v
      where v.software_id = any(${ids}::bigint[]))`.execute(trx);
}

/** Services that run a package can be assessed from the moment on at which its distribution's tracker knows it, and the reverse. */
async function turnReasons(trx: Queryable, verdicts: readonly SoftwareAssessment[]): Promise<void> {
  const turned = verdicts.filter(({ isJudged, wasJudged }) => isJudged !== wasJudged);
  if (turned.length === 0) return;
  await sql`update vulnerability_services v set reason = case when g."isJudged" then null else 'distribution_package' end
    from jsonb_to_recordset(${JSON.stringify(turned.map(({ id, isJudged }) => ({ id, isJudged })))}::jsonb)
      as g(id bigint, "isJudged" boolean) where v.software_id = g.id`.execute(trx);
  await outdateUses(trx);
}

async function writeFindings(trx: Queryable, verdicts: readonly SoftwareAssessment[]): Promise<void> {
  if (verdicts.length === 0) return;
  const ids = verdicts.map(({ id }) => id);
  const findings = verdicts.flatMap(({ id, listed }) =>
    listed.map((finding, place) => toRow(id, finding, place)),
  );
  await sql`
    with given as (select * from jsonb_to_recordset(${JSON.stringify(findings)}::jsonb) as g(software_id bigint, cve text,
      place integer, rating text, score float8, is_known_exploited boolean, finding jsonb)),
    gone as (delete from vulnerability_findings f where f.software_id = any(${ids}::bigint[])
      and not exists (select from given g where g.software_id = f.software_id and g.cve = f.cve))
    insert into vulnerability_findings as held (software_id, cve, place, rating, score, is_known_exploited, finding)
    select software_id, cve, place, rating, score, is_known_exploited, finding from given
    on conflict (software_id, cve) do update set place = excluded.place, rating = excluded.rating,
      score = excluded.score, is_known_exploited = excluded.is_known_exploited, finding = excluded.finding
    where (held.place, held.finding) is distinct from (excluded.place, excluded.finding)`.execute(trx);
}

/** A severe finding keeps its number also while the records do not say it. */
async function numberSevere(trx: Queryable, ids: readonly number[], severe: readonly string[]) {
  const isSevere = sql`f.software_id = any(${[...ids]}::bigint[]) and f.rating = any(${[...severe]}::text[])`;
  await sql`
    insert into vulnerability_severe (software_id, cve) select f.software_id, f.cve from vulnerability_findings f
    where ${isSevere} and not exists (
      select from vulnerability_severe x where x.software_id = f.software_id and x.cve = f.cve)
    order by f.software_id, f.cve on conflict do nothing`.execute(trx);
  await sql`
    update vulnerability_software s set severe = coalesce(c.severe, 0), severe_seq = coalesce(c.seq, 0), worst_cve = c.worst
    from unnest(${[...ids]}::bigint[]) as g(id) left join (
      select f.software_id, count(*)::int as severe, max(x.seq) as seq, (array_agg(f.cve order by f.place))[1] as worst
      from vulnerability_findings f join vulnerability_severe x on x.software_id = f.software_id and x.cve = f.cve
      where ${isSevere} group by 1) c on c.software_id = g.id
    where s.id = g.id`.execute(trx);
}

function toRow(softwareId: number, finding: Finding, place: number) {
  const { cve, severity, isKnownExploited } = finding;
  return {
    ...{
      software_id: softwareId,
      cve,
      place,
      rating: severity?.rating ?? null,
      score: severity?.score ?? null,
    },
    ...{ is_known_exploited: isKnownExploited, finding },
  };
}

function countVerdict({ id, listed, apart, isJudged, leftOut, digest }: SoftwareAssessment) {
  const ratings = listed.map(({ severity }) => severity?.rating ?? 'unrated');
  const counts = ratedSeverities.map(
    (name) => [name, ratings.filter((rating) => rating === name).length] as const,
  );
  return {
    ...{ id, left_out: leftOut, digest, apart, is_judged: isJudged, ...Object.fromEntries(counts) },
    unrated: ratings.length - counts.reduce((sum, [, count]) => sum + count, 0),
  };
}

/** Forgets software that no service runs or ran lately. */
export async function deleteUnused(trx: Queryable): Promise<void> {
  await sql`delete from vulnerability_software s
    where not exists (select from vulnerability_services v where v.software_id = s.id)
      and not exists (select from vulnerability_noted n where n.software_id = s.id)`.execute(trx);
}

/** In every transaction that changes services: their uses are counted again at the end of the run, or by the next one. */
export async function outdateUses(trx: Queryable): Promise<void> {
  await sql`update vulnerability_uses_state set is_outdated = true where not is_outdated`.execute(trx);
}

export async function areUsesOutdated(db: Queryable): Promise<boolean> {
  const { rows } = await sql`select 1 from vulnerability_uses_state where is_outdated`.execute(db);
  return rows.length > 0;
}

/** How many assessed services of each site run each software; a page that would count them itself reads every service. */
export async function countUses(trx: Queryable): Promise<void> {
  // First, so that a change which this count does not see says so again.
  await sql`update vulnerability_uses_state set is_outdated = false`.execute(trx);
  await sql`
    with counted as (
      select s.site_id, v.software_id, count(*)::int as services from vulnerability_services v
      join vulnerability_servers s on s.cluster_id = v.cluster_id and s.vm_id = v.vm_id
      where v.reason is null and v.software_id is not null group by 1, 2),
    gone as (delete from vulnerability_uses u
      where not exists (select from counted c where c.site_id = u.site_id and c.software_id = u.software_id))
    insert into vulnerability_uses as held (site_id, software_id, services)
    select site_id, software_id, services from counted
    on conflict (site_id, software_id) do update set services = excluded.services
    where held.services <> excluded.services`.execute(trx);
}
