/** What is set of thresholds and additional prefixes, and the writes that only the version in the form may make. */
import { sql } from 'kysely';
import { CodedError } from '#common/errors/index.ts';
import { attackDirections } from '#contracts/incidents.ts';
import { isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import type { Drill, DrillOrder } from './drill.ts';
import type { HostGroup, ServerKey, ServerSettings, Settings, SiteSettings } from './settings.ts';
import { noChoices, type ThresholdChoices } from './thresholds.ts';

const revised = sql`revision, (extract(epoch from changed_at) * 1000)::float8 as changed_at_ms, changed_by`;

const unset: SiteSettings = {
  thresholds: noChoices,
  additionalCidrs: [],
  revision: 0,
  changedAtMs: null,
  changedBy: null,
};

/** A row's thresholds may lack a direction. */
function withBoth<Row extends { thresholds: ThresholdChoices }>(row: Row): Row {
  const thresholds = Object.fromEntries(
    attackDirections.map((direction) => [direction, row.thresholds[direction] ?? {}]),
  ) as unknown as ThresholdChoices;
  return { ...row, thresholds };
}

export async function readSiteSettings(db: Queryable, siteId: number): Promise<SiteSettings> {
  const { rows } = await sql<SiteSettings>`
    select thresholds, additional_cidrs, ${revised}
    from protection_sites where site_id = ${siteId}`.execute(db);
  return rows[0] ? withBoth(rows[0]) : unset;
}

const groupColumns = sql`id, name, prefixes, thresholds, ${revised}`;

export async function listGroups(db: Queryable, siteId: number): Promise<HostGroup[]> {
  const { rows } = await sql<HostGroup>`
    select ${groupColumns} from protection_groups where site_id = ${siteId} order by lower(name)`.execute(db);
  return rows.map(withBoth);
}

export async function findGroup(db: Queryable, siteId: number, id: number): Promise<HostGroup | null> {
  const { rows } = await sql<HostGroup>`
    select ${groupColumns} from protection_groups where site_id = ${siteId} and id = ${id}`.execute(db);
  return rows[0] ? withBoth(rows[0]) : null;
}

const serverColumns = sql`id, cluster_id, vm_id as server_id, host(address) as address, thresholds, ${revised}`;

export async function listServers(db: Queryable, siteId: number): Promise<ServerSettings[]> {
  const { rows } = await sql<ServerSettings>`
    select ${serverColumns} from protection_servers where site_id = ${siteId} order by id`.execute(db);
  return rows.map(withBoth);
}

const isOf = (key: ServerKey) =>
  'address' in key
    ? sql`address = ${key.address}::inet`
    : sql`cluster_id = ${key.clusterId} and vm_id = ${key.serverId}`;

export async function findServer(
  db: Queryable,
  siteId: number,
  key: ServerKey,
): Promise<ServerSettings | null> {
  const { rows } = await sql<ServerSettings>`
    select ${serverColumns} from protection_servers where site_id = ${siteId} and ${isOf(key)}`.execute(db);
  return rows[0] ? withBoth(rows[0]) : null;
}

/** Everything of a site. The three statements need no snapshot: a plan is fetched again in 30 seconds. */
export async function readSettings(db: Queryable, siteId: number): Promise<Settings> {
  const [site, groups, servers] = await Promise.all([
    readSiteSettings(db, siteId),
    listGroups(db, siteId),
    listServers(db, siteId),
  ]);
  return { site, groups, servers };
}

/** Writes the settings of a site. The caller holds the lock of the site and has compared the revision. */
export async function writeSite(
  trx: Queryable,
  siteId: number,
  change: Pick<SiteSettings, 'thresholds' | 'additionalCidrs'>,
  by: string,
): Promise<void> {
  await sql`
    insert into protection_sites (site_id, thresholds, additional_cidrs, changed_by)
    values (${siteId}, ${JSON.stringify(change.thresholds)}, ${change.additionalCidrs}, ${by})
    on conflict (site_id) do update set thresholds = excluded.thresholds,
      additional_cidrs = excluded.additional_cidrs, revision = excluded.revision,
      changed_at = svc_now(), changed_by = excluded.changed_by`.execute(trx);
}

type GroupChange = Pick<HostGroup, 'name' | 'prefixes' | 'thresholds'>;

export async function insertGroup(trx: Queryable, siteId: number, group: GroupChange, by: string) {
  return namedOnce(group.name, async () => {
    const { rows } = await sql<{ id: number }>`
      insert into protection_groups (site_id, name, prefixes, thresholds, changed_by)
      values (${siteId}, ${group.name}, ${group.prefixes}, ${JSON.stringify(group.thresholds)}, ${by})
      returning id`.execute(trx);
    return rows[0]!.id;
  });
}

export async function updateGroup(trx: Queryable, id: number, group: GroupChange, by: string): Promise<void> {
  await namedOnce(group.name, async () => {
    await sql`
      update protection_groups set name = ${group.name}, prefixes = ${group.prefixes},
        thresholds = ${JSON.stringify(group.thresholds)}, revision = nextval('protection_revisions'), changed_at = svc_now(), changed_by = ${by}
      where id = ${id}`.execute(trx);
  });
}

async function namedOnce<Result>(name: string, write: () => Promise<Result>): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    if (!isUniqueViolation(error, 'protection_groups_name')) throw error;
    const message = `This site already has a group named "${name}". Choose another name.`;
    throw new CodedError('protection.invalid', message, { fields: { name: message } });
  }
}

export async function deleteGroup(trx: Queryable, id: number): Promise<void> {
  await sql`delete from protection_groups where id = ${id}`.execute(trx);
}

export async function insertServer(
  trx: Queryable,
  siteId: number,
  key: ServerKey,
  thresholds: ThresholdChoices,
  by: string,
): Promise<void> {
  const { clusterId, serverId, address } = { clusterId: null, serverId: null, address: null, ...key };
  await sql`
    insert into protection_servers (site_id, cluster_id, vm_id, address, thresholds, changed_by)
    values (${siteId}, ${clusterId}, ${serverId}, ${address}, ${JSON.stringify(thresholds)}, ${by})`.execute(
    trx,
  );
}

export async function updateServer(trx: Queryable, id: number, thresholds: ThresholdChoices, by: string) {
  await sql`
    update protection_servers set thresholds = ${JSON.stringify(thresholds)}, revision = nextval('protection_revisions'),
      changed_at = svc_now(), changed_by = ${by}
    where id = ${id}`.execute(trx);
}

export async function deleteServer(trx: Queryable, id: number): Promise<void> {
  await sql`delete from protection_servers where id = ${id}`.execute(trx);
}

const columns = sql`id, host(address) as address, direction, class, pps, bps,
  (extract(epoch from starts_at) * 1000)::float8 as starts_at_ms, seconds, mails_customer, started_by,
  (extract(epoch from stopped_at) * 1000)::float8 as stopped_at_ms, stopped_by`;

const isOpen = sql`stopped_at is null and starts_at + seconds * interval '1 second' > svc_now()`;

/** Those that sensors have to run, now or soon, in an order that lasts. */
export async function listOpenDrills(db: Queryable, siteId: number): Promise<Drill[]> {
  const { rows } = await sql<Drill>`
    select ${columns} from protection_drills where site_id = ${siteId} and ${isOpen}
    order by starts_at, id`.execute(db);
  return rows;
}

/** The newest first; of one address or of all. */
export async function listDrills(
  db: Queryable,
  siteId: number,
  address: string | null,
  limit: number,
): Promise<Drill[]> {
  const { rows } = await sql<Drill>`
    select ${columns} from protection_drills
    where site_id = ${siteId} and (${address}::inet is null or address = ${address}::inet)
    order by starts_at desc, id limit ${limit}`.execute(db);
  return rows;
}

export async function insertDrill(
  trx: Queryable,
  siteId: number,
  drill: DrillOrder & { id: string; address: string; delaySeconds: number },
  by: string,
): Promise<void> {
  await sql`
    insert into protection_drills (id, site_id, address, direction, class, pps, bps, starts_at, seconds, mails_customer, started_by)
    values (${drill.id}, ${siteId}, ${drill.address}, ${drill.direction}, ${drill.class}, ${drill.pps}, ${drill.bps},
      date_trunc('second', svc_now()) + ${drill.delaySeconds} * interval '1 second', ${drill.seconds}, ${drill.mailsCustomer}, ${by})`.execute(
    trx,
  );
}

/** The drill that was stopped; null: the site has none of this id that is waiting or running. */
export async function stopDrill(
  trx: Queryable,
  siteId: number,
  id: string,
  by: string,
): Promise<Drill | null> {
  const { rows } = await sql<Drill>`
    update protection_drills set stopped_at = svc_now(), stopped_by = ${by}
    where id = ${id} and site_id = ${siteId} and ${isOpen} returning ${columns}`.execute(trx);
  return rows[0] ?? null;
}
