/** Drills of the sites. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Drill, DrillOrder } from './drill.ts';

const columns = sql`id, host(address) as address, direction, class, pps, bps,
  (extract(epoch from starts_at) * 1000)::float8 as "startsAtMs", seconds, mails_customer as "mailsCustomer", started_by as "startedBy",
  (extract(epoch from stopped_at) * 1000)::float8 as "stoppedAtMs", stopped_by as "stoppedBy"`;

const isOpen = sql`stopped_at is null and starts_at + seconds * interval '1 second' > svc_now()`;

/** Those that sensors have to run, now or soon, in an order that lasts. */
export async function listOpenDrills(db: Queryable, siteId: number): Promise<Drill[]> {
  const { rows } = await sql<Drill>`
    select ${columns} from protection_drills where site_id = ${siteId} and ${isOpen} order by starts_at, id`.execute(
    db,
  );
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
