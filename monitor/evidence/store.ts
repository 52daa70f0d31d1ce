/** Rows of capture files. */
import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A file before it is stored. */
export interface NewFile {
  siteId: number;
  sensorId: number;
  /** The sensor's own UUID of the incident. */
  observationId: string;
  capture: string;
  /** SHA-256 of the object. */
  digest: Uint8Array;
  objectBytes: number;
  fileBytes: number;
  packets: number;
  firstPacketAtMs: number;
  lastPacketAtMs: number;
  incidentEndsAtMs: number;
}

/** Files of a sensor that are stored, or were begun. */
export async function countFiles(db: Queryable, sensorId: number): Promise<number> {
  const { rows } = await sql<{ files: number }>`
    select count(*)::int as files from evidence_files where sensor_id = ${sensorId}`.execute(db);
  return rows[0]!.files;
}

export async function isStored(db: Queryable, sensorId: number, observationId: string): Promise<boolean> {
  const { rows } = await sql<{ is: boolean }>`
    select exists (select 1 from evidence_files where sensor_id = ${sensorId}
      and observation_id = ${observationId}::uuid and stored_at is not null) as is`.execute(db);
  return rows[0]!.is;
}

/** Where an object belongs. */
export interface StoredObject {
  id: string;
  objectKey: string;
}

/** A row for this file before its object; the same file that was begun before keeps its row, which is not removed soon. */
export async function beginFile(db: Queryable, file: NewFile): Promise<StoredObject> {
  const at = (ms: number) => sql`to_timestamp(${ms}::float8 / 1000)`;
  const id = randomUUID();
  const { rows } = await sql<StoredObject>`
    insert into evidence_files as held (id, site_id, sensor_id, observation_id, capture, object_key, digest, object_bytes,
      file_bytes, packets, first_packet_at, last_packet_at, incident_ends_at)
    values (${id}::uuid, ${file.siteId}, ${file.sensorId}, ${file.observationId}::uuid, ${file.capture},
      ${`site-${file.siteId}/${id}.pcap.zst`}, ${file.digest}::bytea, ${file.objectBytes}::int,
      ${file.fileBytes}::int, ${file.packets}::int, ${at(file.firstPacketAtMs)}, ${at(file.lastPacketAtMs)},
      ${at(file.incidentEndsAtMs)})
    on conflict (sensor_id, observation_id, digest) do update set begun_at = svc_now()
    returning held.id, held.object_key`.execute(db);
  return rows[0]!;
}

/** The object is there. False: the row was removed meanwhile. Another file of the incident violates a unique index. */
export async function markStored(db: Queryable, id: string): Promise<boolean> {
  const { rows } = await sql`
    update evidence_files set stored_at = coalesce(stored_at, svc_now())
    where id = ${id}::uuid returning id`.execute(db);
  return rows.length > 0;
}

/** A stored file. */
export interface EvidenceFile extends Omit<NewFile, 'digest' | 'objectBytes' | 'incidentEndsAtMs'> {
  id: string;
  objectKey: string;
  storedAtMs: number;
  /** When it is deleted. */
  keptUntilMs: number;
}

const ms = (column: string) => sql`(extract(epoch from ${sql.ref(column)}) * 1000)::float8`;

/** Stored files of these observations that have not expired, the earliest packets first. */
export async function listFiles(
  db: Queryable,
  siteId: number,
  observations: readonly { sensorId: number; observationId: string }[],
  days: number,
): Promise<EvidenceFile[]> {
  const { rows } = await sql<EvidenceFile>`
    select f.id, f.site_id, f.sensor_id, f.observation_id, f.capture, f.object_key, f.file_bytes, f.packets,
      ${ms('f.first_packet_at')} as first_packet_at_ms, ${ms('f.last_packet_at')} as last_packet_at_ms,
      ${ms('f.stored_at')} as stored_at_ms,
      (extract(epoch from f.stored_at + make_interval(days => ${days}::int)) * 1000)::float8 as kept_until_ms
    from unnest(${observations.map(({ sensorId }) => sensorId)}::bigint[],
      ${observations.map(({ observationId }) => observationId)}::uuid[]) as g(sensor_id, observation_id)
    join evidence_files f using (sensor_id, observation_id)
    where f.site_id = ${siteId} and f.stored_at > svc_now() - make_interval(days => ${days}::int)
    order by f.first_packet_at, f.id`.execute(db);
  return rows;
}

/** What is to be removed: files that are stored, or were begun, longer ago; or of incidents that ended before a time. */
export type Expiry = { days: number } | { endedBeforeMs: number };

/** One expired row, locked; rows that another process is removing are left to it. */
export async function lockExpired(trx: Queryable, expiry: Expiry): Promise<StoredObject | null> {
  const isExpired =
    'days' in expiry
      ? sql`coalesce(stored_at, begun_at) < svc_now() - make_interval(days => ${expiry.days}::int)`
      : sql`incident_ends_at < to_timestamp(${expiry.endedBeforeMs}::float8 / 1000)`;
  const { rows } = await sql<StoredObject>`
    select id, object_key from evidence_files where ${isExpired}
    order by coalesce(stored_at, begun_at) limit 1 for update skip locked`.execute(trx);
  return rows[0] ?? null;
}

export async function deleteFile(trx: Queryable, id: string): Promise<void> {
  await sql`delete from evidence_files where id = ${id}::uuid`.execute(trx);
}
