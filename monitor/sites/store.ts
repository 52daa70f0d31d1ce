import { type RawBuilder, sql } from 'kysely';
import { CodedError } from '#common/errors/index.ts';
import { isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';

export interface Site {
  id: number;
  name: string;
  /** Canonical prefixes. */
  localCidrs: string[];
  /** What it shows was made up, as in a demo world. */
  isSimulated: boolean;
}

export interface ClusterMapping {
  clusterId: number;
  siteId: number;
}

const columns = sql`id, name, local_cidrs, is_simulated`;

export async function insertSite(db: Queryable, name: string, isSimulated: boolean): Promise<Site> {
  const statement = sql<Site>`
    insert into sites (name, is_simulated) values (${name}, ${isSimulated}) returning ${columns}`;
  return (await named(name, statement, db))!;
}

export function renameSite(db: Queryable, id: number, name: string): Promise<Site | null> {
  return named(name, sql<Site>`update sites set name = ${name} where id = ${id} returning ${columns}`, db);
}

/** Runs a statement that sets a site's name. Throws `sites.name_taken` when another site has it. */
async function named(name: string, statement: RawBuilder<Site>, db: Queryable): Promise<Site | null> {
  try {
    return (await statement.execute(db)).rows[0] ?? null;
  } catch (error) {
    if (isUniqueViolation(error, 'sites_name')) {
      throw new CodedError('sites.name_taken', `A site named "${name}" already exists. Choose another name.`);
    }
    throw error;
  }
}

export async function listSites(db: Queryable): Promise<Site[]> {
  return (await sql<Site>`select ${columns} from sites order by lower(name)`.execute(db)).rows;
}

export async function findSite(db: Queryable, id: number): Promise<Site | null> {
  const { rows } = await sql<Site>`select ${columns} from sites where id = ${id}`.execute(db);
  return rows[0] ?? null;
}

/** Locks the row of a site until the end of the transaction, for what a site may have only so much of; false without such a site. */
export async function lockSite(trx: Queryable, id: number): Promise<boolean> {
  const { rows } = await sql`select 1 from sites where id = ${id} for no key update`.execute(trx);
  return rows.length > 0;
}

export async function updateLocalCidrs(db: Queryable, id: number, cidrs: string[]): Promise<Site | null> {
  const { rows } = await sql<Site>`
    update sites set local_cidrs = ${cidrs} where id = ${id} returning ${columns}`.execute(db);
  return rows[0] ?? null;
}

export async function upsertCluster(db: Queryable, clusterId: number, siteId: number): Promise<void> {
  await sql`insert into site_clusters (cluster_id, site_id) values (${clusterId}, ${siteId})
    on conflict (cluster_id) do update set site_id = excluded.site_id, mapped_at = svc_now()
    where site_clusters.site_id <> excluded.site_id`.execute(db);
}

export async function deleteCluster(db: Queryable, clusterId: number): Promise<void> {
  await sql`delete from site_clusters where cluster_id = ${clusterId}`.execute(db);
}

export async function listClusters(db: Queryable): Promise<ClusterMapping[]> {
  const { rows } = await sql<ClusterMapping>`
    select cluster_id, site_id from site_clusters order by cluster_id`.execute(db);
  return rows;
}
