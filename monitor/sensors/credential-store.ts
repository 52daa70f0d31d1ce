/** Credentials of sensors: issued, used for the first time, replaced. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { EnrolledSensor } from './store.ts';

/** A share of its life after which a credential is to be renewed. */
const rotationShare = 2 / 3;
/** Replaced credentials are kept for this long, to recognise copies. */
const replacedDays = 365;
/** Requests that were under way when a credential was replaced are no misuse. */
const overlapSeconds = 300;

/** How a credential stands. */
export interface CredentialState {
  id: string;
  /** Null: it has no end. */
  expiresAtMs: number | null;
  /** The sensor should ask for another one. */
  isRotationDue: boolean;
  /** Issued by a rotation, and not used before. */
  isNew: boolean;
}

export interface KnownCredential extends CredentialState {
  sensor: EnrolledSensor;
  digest: Buffer;
  /** Why it is not taken; null: it is. */
  refusal: 'expired' | 'replaced' | null;
  /** When it ended, unix milliseconds; null: it has not. */
  endedAtMs: number | null;
}

const isDue = sql`(c.first_used_at is not null and (c.expires_at is null or s.rotation_requested_at is not null
  or svc_now() >= c.issued_at + (c.expires_at - c.issued_at) * ${rotationShare}::float8))`;

/** What is known under these ids of sensors that may still speak, by id. */
export async function findCredentials(
  reader: Queryable,
  ids: readonly string[],
): Promise<Map<string, KnownCredential>> {
  const { rows } = await sql<Omit<KnownCredential, 'sensor'> & { sensor: EnrolledSensor }>`
    select c.id, c.digest, (extract(epoch from c.expires_at) * 1000)::float8 as expires_at_ms, ${isDue} as is_rotation_due,
      c.first_used_at is null as is_new,
      case when c.replaced_at is not null then 'replaced' when c.expires_at <= svc_now() then 'expired' end as refusal,
      (extract(epoch from coalesce(c.replaced_at, case when c.expires_at <= svc_now() then c.expires_at end)) * 1000)::float8
        as ended_at_ms,
      json_build_object('id', s.id, 'siteId', s.site_id, 'hostName', s.host_name, 'node', s.node) as sensor
    from sensor_credentials c join sensors s on s.id = c.sensor_id
    where c.id = any(${[...ids]}) and s.revoked_at is null`.execute(reader);
  return new Map(rows.map((row) => [row.id, row]));
}

export interface NewCredential {
  id: string;
  digest: Buffer;
}

/** The credential that a sensor is enrolled with. It has no end: not every sensor can rotate. */
export async function insertFirstCredential(trx: Queryable, sensorId: number, { id, digest }: NewCredential) {
  await sql`insert into sensor_credentials (id, sensor_id, digest, first_used_at)
    values (${id}, ${sensorId}, ${digest}, svc_now())`.execute(trx);
}

/** The credential's state behind a lock on its sensor's credentials; null when it is not taken any more. */
export async function lockCredential(
  trx: Queryable,
  id: string,
): Promise<(CredentialState & { sensorId: number; hostName: string; siteId: number }) | null> {
  // Not `for update`: rows that refer to the sensor are written meanwhile.
  await sql`select 1 from sensors where id = (select sensor_id from sensor_credentials where id = ${id})
    for no key update`.execute(trx);
  const { rows } = await sql<CredentialState & { sensorId: number; hostName: string; siteId: number }>`
    select c.id, c.sensor_id, s.host_name, s.site_id,
      (extract(epoch from c.expires_at) * 1000)::float8 as expires_at_ms, ${isDue} as is_rotation_due,
      c.first_used_at is null as is_new
    from sensor_credentials c join sensors s on s.id = c.sensor_id
    where c.id = ${id} and s.revoked_at is null and c.replaced_at is null
      and (c.expires_at is null or c.expires_at > svc_now())`.execute(trx);
  return rows[0] ?? null;
}

/** Notes the first use of a credential: it is the sensor's only one from now on. False: it was used before. */
export async function useCredential(trx: Queryable, sensorId: number, id: string): Promise<boolean> {
  const { rows } = await sql`update sensor_credentials set first_used_at = svc_now()
    where id = ${id} and first_used_at is null returning 1`.execute(trx);
  if (rows.length === 0) return false;
  await sql`update sensor_credentials set replaced_at = svc_now()
    where sensor_id = ${sensorId} and id <> ${id} and replaced_at is null`.execute(trx);
  await sql`update sensors set rotation_requested_at = null
    where id = ${sensorId} and rotation_requested_at is not null`.execute(trx);
  return true;
}

/** True when a credential of this sensor was issued within these seconds and is not used yet. */
export async function hasFreshCredential(trx: Queryable, sensorId: number, seconds: number) {
  const { rows } =
    await sql`select 1 from sensor_credentials where sensor_id = ${sensorId} and first_used_at is null
    and issued_at > svc_now() - make_interval(secs => ${seconds}::float8)`.execute(trx);
  return rows.length > 0;
}

/**
 * Adds a credential that ends after these days; one that was issued before and never used is gone, and so are those that
 * were replaced long ago. Returns when it ends.
 */
export async function insertNextCredential(
  trx: Queryable,
  sensorId: number,
  { id, digest }: NewCredential,
  days: number,
): Promise<number> {
  await sql`delete from sensor_credentials where sensor_id = ${sensorId}
    and (first_used_at is null or replaced_at < svc_now() - make_interval(days => ${replacedDays}))`.execute(
    trx,
  );
  const { rows } = await sql<{ expiresAtMs: number }>`
    insert into sensor_credentials (id, sensor_id, digest, expires_at)
    values (${id}, ${sensorId}, ${digest}, svc_now() + make_interval(days => ${days}))
    returning (extract(epoch from expires_at) * 1000)::float8 as expires_at_ms`.execute(trx);
  return rows[0]!.expiresAtMs;
}

/** Notes that a replaced credential is still shown, at most once a minute. */
export async function noteMisuse(db: Queryable, id: string): Promise<void> {
  await sql`update sensor_credentials set misused_at = svc_now()
    where id = ${id} and replaced_at < svc_now() - make_interval(secs => ${overlapSeconds})
      and (misused_at is null or misused_at < svc_now() - interval '1 minute')`.execute(db);
}

/** Asks the sensor to rotate; false when the site has no such sensor. */
export async function requestRotation(trx: Queryable, siteId: number, sensorId: number): Promise<boolean> {
  const { rows } = await sql`
    update sensors set rotation_requested_at = coalesce(rotation_requested_at, svc_now())
    where id = ${sensorId} and site_id = ${siteId} and revoked_at is null returning 1`.execute(trx);
  return rows.length === 1;
}
