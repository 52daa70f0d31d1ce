import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { PlanNode, PlanSubject } from './plan-section.ts';

export interface EnrolledSensor {
  id: number;
  siteId: number;
  hostName: string;
  /** The node whose servers it speaks for. */
  node: string;
}

/** A node as an operator chooses it. */
export interface ChosenNode {
  name: string;
  /** Null: in whichever cluster of the site has a node of that name. */
  clusterId: number | null;
}

/** What a sensor said with an upload. */
export interface Contact {
  sensorId: number;
  sensorVersion: string;
  spoolId: string;
  sequence: number;
  /** Start of the newest minute in it, seconds since 1970; null for gaps alone. */
  newestMinute: number | null;
}

export interface SensorState extends EnrolledSensor {
  clusterId: number | null;
  /** An operator chose the node; otherwise the sensor named it itself. */
  isNodeBound: boolean;
  enrolledAtMs: number;
  /** Null: enrolled and never heard since. */
  lastContactAtMs: number | null;
  sensorVersion: string | null;
  spoolId: string | null;
  sequence: number | null;
  /** Start of the newest minute it has sent, unix milliseconds. */
  newestMinuteMs: number | null;
  /** Of the credential that it uses. */
  credentialIssuedAtMs: number;
  /** Null: it has no end, because the sensor has not rotated it yet. */
  credentialExpiresAtMs: number | null;
  /** An operator asked for a rotation, and the sensor has not finished one since. */
  rotationRequestedAtMs: number | null;
}

/** Stores a token's digest for an hour; returns when it expires. */
export async function insertToken(
  db: Queryable,
  siteId: number,
  digest: Buffer,
  node: ChosenNode | null,
  replaces: boolean,
): Promise<number> {
  const { rows } = await sql<{ expiresAtMs: number }>`
    insert into enrolment_tokens (digest, site_id, node, cluster_id, replaces, expires_at)
    values (${digest}, ${siteId}, ${node?.name ?? null}, ${node?.clusterId ?? null}, ${replaces},
      svc_now() + interval '1 hour')
    returning (extract(epoch from expires_at) * 1000)::float8 as expires_at_ms`.execute(db);
  return rows[0]!.expiresAtMs;
}

interface UsedToken {
  tokenId: number;
  siteId: number;
  /** Null: the token has no node. */
  node: string | null;
  clusterId: number | null;
  /** The sensor takes the place of the one that its node has. */
  replaces: boolean;
}

/** Spends a live token. The row lock of the update lets one of two that come at once have it. */
export async function useToken(trx: Queryable, digest: Buffer): Promise<UsedToken | null> {
  const { rows } = await sql<UsedToken>`
    update enrolment_tokens set used_at = svc_now()
    where digest = ${digest} and used_at is null and expires_at > svc_now()
    returning id as token_id, site_id, node, cluster_id, replaces`.execute(trx);
  return rows[0] ?? null;
}

export async function insertSensor(
  trx: Queryable,
  tokenId: number,
  sensor: Omit<EnrolledSensor, 'id'> & Pick<SensorState, 'clusterId' | 'isNodeBound'>,
): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into sensors (site_id, host_name, node, cluster_id, is_node_bound)
    values (${sensor.siteId}, ${sensor.hostName}, ${sensor.node}, ${sensor.clusterId}, ${sensor.isNodeBound})
    returning id`.execute(trx);
  const id = rows[0]!.id;
  await sql`update enrolment_tokens set sensor_id = ${id} where id = ${tokenId}`.execute(trx);
  return id;
}

/**
 * Notes contacts, one for each sensor at most, in the order of their ids, so that two who note the same can't wait for each
 * other in a circle. A late upload of an old spool moves the time of contact, never the place that was reached.
 */
export async function upsertContacts(trx: Queryable, contacts: readonly Contact[]): Promise<void> {
  await sql`
    insert into sensor_contacts as known (sensor_id, last_contact_at, sensor_version, spool_id, sequence, newest_minute,
      newest_minute_at)
    select sensor_id, svc_now(), sensor_version, spool_id, sequence, to_timestamp(newest_minute),
      case when newest_minute is not null then svc_now() end
    from unnest(${contacts.map((one) => one.sensorId)}::bigint[], ${contacts.map((one) => one.sensorVersion)}::text[],
      ${contacts.map((one) => one.spoolId)}::uuid[], ${contacts.map((one) => one.sequence)}::bigint[],
      ${contacts.map((one) => one.newestMinute)}::float8[]) as given (sensor_id, sensor_version, spool_id, sequence, newest_minute)
    order by sensor_id
    on conflict (sensor_id) do update set
      last_contact_at = svc_now(), sensor_version = excluded.sensor_version,
      sequence = case when known.spool_id = excluded.spool_id then greatest(known.sequence, excluded.sequence) else excluded.sequence end,
      spool_id = excluded.spool_id,
      newest_minute = greatest(known.newest_minute, excluded.newest_minute),
      newest_minute_at = case when excluded.newest_minute is not null then svc_now() else known.newest_minute_at end`.execute(
    trx,
  );
}

export async function listSensors(db: Queryable, siteId: number): Promise<SensorState[]> {
  const { rows } = await sql<SensorState>`
    select s.id, s.site_id, s.host_name, s.node, s.cluster_id, s.is_node_bound,
      (extract(epoch from s.enrolled_at) * 1000)::float8 as enrolled_at_ms,
      (extract(epoch from c.last_contact_at) * 1000)::float8 as last_contact_at_ms, c.sensor_version, c.spool_id,
      c.sequence,
      (extract(epoch from least(c.newest_minute, date_trunc('minute', svc_now()))) * 1000)::float8 as newest_minute_ms,
      (extract(epoch from coalesce(k.issued_at, s.enrolled_at)) * 1000)::float8 as credential_issued_at_ms,
      (extract(epoch from k.expires_at) * 1000)::float8 as credential_expires_at_ms,
      (extract(epoch from s.rotation_requested_at) * 1000)::float8 as rotation_requested_at_ms
    from sensors s left join sensor_contacts c on c.sensor_id = s.id
    left join sensor_credentials k on k.sensor_id = s.id and k.first_used_at is not null and k.replaced_at is null
    where s.site_id = ${siteId} and s.revoked_at is null order by lower(s.host_name), s.id`.execute(db);
  return rows;
}

export async function revokeSensor(db: Queryable, siteId: number, sensorId: number): Promise<boolean> {
  const { rows } = await sql`
    update sensors set revoked_at = svc_now()
    where id = ${sensorId} and site_id = ${siteId} and revoked_at is null returning 1`.execute(db);
  return rows.length === 1;
}

/** Gives a sensor another node; returns the one it had, or null when the site has no such sensor. */
export async function updateNode(trx: Queryable, siteId: number, sensorId: number, node: ChosenNode) {
  const { rows } = await sql<{ node: string }>`
    with held as (select id, node from sensors where id = ${sensorId} and site_id = ${siteId} and revoked_at is null for update)
    update sensors s set node = ${node.name}, cluster_id = ${node.clusterId}::bigint, is_node_bound = true
    from held where s.id = held.id returning held.node`.execute(trx);
  return rows[0]?.node ?? null;
}

// Which sensors a node has. A node has one; installations of before may have more.

export interface Occupant {
  id: number;
  hostName: string;
}

/** Sensors on this node that may still send. A cluster that is not known may be any of the site's. */
export async function listOccupants(
  db: Queryable,
  siteId: number,
  node: PlanNode,
  exceptSensorId: number | null = null,
): Promise<Occupant[]> {
  const { rows } = await sql<Occupant>`
    select id, host_name from sensors
    where site_id = ${siteId} and revoked_at is null and node = ${node.name}
      and coalesce(cluster_id = ${node.clusterId}::bigint, true) and id is distinct from ${exceptSensorId}::bigint
    order by id`.execute(db);
  return rows;
}

/** The sensors that have a plan. */
export async function listSubjects(db: Queryable, siteId: number | null): Promise<PlanSubject[]> {
  const { rows } = await sql<PlanSubject>`
    select id as sensor_id, site_id, json_build_object('name', node, 'clusterId', cluster_id) as node
    from sensors where revoked_at is null
      and (${siteId}::bigint is null or site_id = ${siteId}::bigint)`.execute(db);
  return rows;
}

/** After a pause of ten minutes a refusal is a new one. */
export async function upsertRefusal(
  db: Queryable,
  sensorId: number,
  refusal: { code: string; message: string },
): Promise<void> {
  await sql`
    insert into sensor_refusals as held (sensor_id, code, message, first_refused_at, last_refused_at)
    values (${sensorId}, ${refusal.code}, ${refusal.message.slice(0, 300)}, svc_now(), svc_now())
    on conflict (sensor_id) do update set code = excluded.code, message = excluded.message, last_refused_at = svc_now(),
      first_refused_at = case when held.last_refused_at > svc_now() - interval '10 minutes'
        then held.first_refused_at else svc_now() end`.execute(db);
}
