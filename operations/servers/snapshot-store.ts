/** Every statement on snapshots that changes them, or looks at what is no customer's. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface NewSnapshot {
  id: number;
  serverId: number;
  actionId: number;
  imageId: number;
  name: string;
  diskGb: number;
}

/** A fresh id, drawn before the row exists, because its action names it. */
export async function nextSnapshotId(tx: Queryable): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    select nextval(pg_get_serial_sequence('server_snapshots', 'id')) as id`.execute(tx);
  return rows[0]!.id;
}

export async function insertSnapshot(tx: Queryable, given: NewSnapshot): Promise<void> {
  await sql`insert into server_snapshots (id, server_id, action_id, image_id, name, state, disk_gb)
    overriding system value
    values (${given.id}, ${given.serverId}, ${given.actionId}, ${given.imageId}, ${given.name}, 'creating', ${given.diskGb})`.execute(
    tx,
  );
}

export async function findByAction(tx: Queryable, actionId: number): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    select id from server_snapshots where action_id = ${actionId}`.execute(tx);
  return rows[0]!.id;
}

export async function setState(tx: Queryable, id: number, state: 'ready' | 'deleting'): Promise<void> {
  await sql`update server_snapshots set state = ${state},
      ready_at = case when ${state} = 'ready' then svc_now() else ready_at end
    where id = ${id}`.execute(tx);
}

export interface DueSnapshot {
  id: number;
  serverId: number;
  tenantId: number;
  /** That have begun since it was ready. */
  hours: number;
  /** What those cost that are not charged yet. */
  quanta: number;
}

/** What so many hours of the snapshot `c` cost since it was ready. */
const costOf = (hours: RawBuilder<unknown>, gbQuanta: number) =>
  sql`div(c.size_bytes::numeric * ${hours} * ${gbQuanta}::bigint, 730 * 1000000000::bigint)`;

/**
 * Snapshots with hours that are not charged, locked: a batch of all, without those that others hold, or the named ones, which are
 * waited for.
 */
export async function lockDueSnapshots(
  tx: Queryable,
  of: { gbQuanta: number } & ({ afterId: number; limit: number } | { id: number } | { serverId: number }),
): Promise<DueSnapshot[]> {
  const begun = sql`(floor(extract(epoch from svc_now() - c.ready_at) / 3600)::bigint + 1)`;
  const cost = (hours: RawBuilder<unknown>) => costOf(hours, of.gbQuanta);
  const which =
    'afterId' in of
      ? sql`c.id > ${of.afterId}`
      : 'id' in of
        ? sql`c.id = ${of.id}`
        : sql`c.server_id = ${of.serverId}`;
  // Beside an order that holds the snapshot, which has the balance already that a charge waits for.
  const batch =
    'afterId' in of ? sql`limit ${of.limit} for no key update of c skip locked` : sql`for no key update of c`;
  const { rows } = await sql<DueSnapshot>`
    select c.id, c.server_id, s.tenant_id, ${begun} as hours,
      (${cost(begun)} - ${cost(sql`c.charged_hours`)})::bigint as quanta
    from server_snapshots c join servers s on s.id = c.server_id
    where ${which} and c.state = 'ready' and c.charged_hours < ${begun} order by c.id ${batch}`.execute(tx);
  return rows;
}

/** What the ready snapshots of a tenant will still cost until the month ends. */
export async function sumRemainingMonth(db: Queryable, tenantId: number, gbQuanta: number): Promise<number> {
  const { rows } = await sql<{ quanta: number }>`
    with present as (
      select (date_trunc('month', svc_now() at time zone 'utc') + interval '1 month') at time zone 'utc' as ends_at)
    select coalesce(sum(greatest(0, ${costOf(sql`ceil(extract(epoch from present.ends_at - c.ready_at) / 3600)::bigint`, gbQuanta)}
        - ${costOf(sql`c.charged_hours`, gbQuanta)})), 0)::bigint as quanta
    from present cross join server_snapshots c join servers s on s.id = c.server_id
    where s.tenant_id = ${tenantId} and c.state = 'ready'`.execute(db);
  return rows[0]!.quanta;
}

export async function noteChargedHours(tx: Queryable, id: number, hours: number): Promise<void> {
  await sql`update server_snapshots set charged_hours = ${hours} where id = ${id}`.execute(tx);
}

/** Notes that the copy is complete, and what it takes. */
export async function noteCopied(db: Queryable, id: number, bytes: number): Promise<void> {
  await sql`update server_snapshots set size_bytes = ${bytes} where id = ${id}`.execute(db);
}

export async function isCopied(db: Queryable, id: number): Promise<boolean> {
  const { rows } =
    await sql`select 1 from server_snapshots where id = ${id} and size_bytes is not null`.execute(db);
  return rows.length > 0;
}

export async function isKnown(db: Queryable, id: number): Promise<boolean> {
  const { rows } = await sql`select 1 from server_snapshots where id = ${id}`.execute(db);
  return rows.length > 0;
}

/** Copies that are no snapshots any more. */
export async function listDiscarded(db: Queryable, serverId: number): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select id from server_snapshots where server_id = ${serverId} and state = 'deleting' order by id`.execute(
    db,
  );
  return rows.map(({ id }) => id);
}

export async function deleteSnapshot(db: Queryable, id: number): Promise<void> {
  await sql`delete from server_snapshots where id = ${id} and state = 'deleting'`.execute(db);
}

export async function deleteAll(tx: Queryable, serverId: number): Promise<void> {
  await sql`delete from server_snapshots where server_id = ${serverId}`.execute(tx);
}

/** The snapshot that the first disk of a server is made from, and the server that it is of. */
export interface Source {
  snapshotId: number;
  snapshotServerId: number;
}

/**
 * Holds a complete snapshot of the workspace for a server that is made from it; false where there is none. It never waits, so that an
 * order, which has the balance of its account, can't wait for a deletion that charges it: a snapshot that is locked is being deleted.
 */
export async function holdSnapshot(
  tx: Queryable,
  { serverId, tenantId, snapshotId }: { serverId: number; tenantId: number; snapshotId: number },
): Promise<boolean> {
  const { rows } = await sql`
    insert into server_sources (server_id, snapshot_id, snapshot_server_id)
    select ${serverId}::bigint, held.id, held.server_id from (
      select c.id, c.server_id from server_snapshots c join servers s on s.id = c.server_id
      where c.id = ${snapshotId} and c.state = 'ready' and s.tenant_id = ${tenantId} and s.provisioning_state = 'ready'
      for key share of c skip locked) held
    returning 1`.execute(tx);
  return rows.length === 1;
}

/** Of an order that will not be carried out. */
export async function releaseHeldSnapshot(tx: Queryable, serverId: number): Promise<void> {
  await sql`delete from server_sources where server_id = ${serverId}`.execute(tx);
}

export async function findSource(db: Queryable, serverId: number): Promise<Source | null> {
  const { rows } = await sql<Source>`
    select snapshot_id, snapshot_server_id from server_sources
    where server_id = ${serverId}`.execute(db);
  return rows[0] ?? null;
}

/** Whether a server is being made from this snapshot, or from one of this server. Until the transaction ends no order holds them. */
export async function isSource(tx: Queryable, of: { id: number } | { serverId: number }): Promise<boolean> {
  const which = 'id' in of ? sql`c.id = ${of.id}` : sql`c.server_id = ${of.serverId}`;
  await sql`select 1 from server_snapshots c where ${which} order by c.id for update`.execute(tx);
  const { rows } = await sql`
    select 1 from server_snapshots c join server_sources o on o.snapshot_id = c.id
    left join servers s on s.id = o.server_id
    where ${which} and (s.id is null or s.provisioning_state in ('queued', 'provisioning')) limit 1`.execute(
    tx,
  );
  return rows.length > 0;
}
