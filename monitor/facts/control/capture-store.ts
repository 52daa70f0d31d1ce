import { sql } from 'kysely';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { checkAddresses, type ForeignCheck, share } from '#monitor/placements/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { localAddressOf } from '../contract/collect-facts.ts';
import type * as facts from '../contract/facts.ts';
import type { FactOrigin, FactUpload } from '../contract/facts.ts';

/** A capture's minute with where it is from. */
export interface OriginMinute {
  siteId: number;
  sensorId: number;
  captureId: number;
  minute: TelemetryMinute;
}

/** Minutes of uploads, ready to be written. */
export interface PlacedMinutes {
  minutes: OriginMinute[];
  /** Its verdicts stay true until the transaction ends. */
  isForeign: ForeignCheck;
  /** The database's time. */
  nowMs: number;
}

/**
 * Finds or makes the captures of these uploads, and who may speak for their addresses; null where they have no minutes. Captures
 * are made in `makeIn`: an engine whose rows outlive a rollback of the transaction has to name it another connection, or the
 * captures of the repeat would have other numbers.
 */
export async function placeMinutes(
  trx: Queryable,
  uploads: readonly FactUpload[],
  makeIn: Queryable = trx,
): Promise<PlacedMinutes | null> {
  if (!uploads.some(({ minutes }) => minutes.length > 0)) return null;
  const { captureOf, nowMs } = await ensureCaptures(trx, uploads, makeIn);
  const minutes: OriginMinute[] = uploads.flatMap(({ origin, minutes }) =>
    minutes.map((minute) => ({ ...origin, captureId: captureOf(origin, minute), minute })),
  );
  await share(trx);
  return { minutes, isForeign: await checkAddresses(trx, spokenOf(minutes)), nowMs };
}

/** The local addresses that sensors tell of. */
function spokenOf(minutes: readonly OriginMinute[]) {
  const bySensor = new Map<number, Set<string>>();
  for (const { sensorId, minute } of minutes) {
    const subjects = bySensor.get(sensorId) ?? new Set();
    bySensor.set(sensorId, subjects);
    for (const { isLocal, address } of minute.hosts) if (isLocal) subjects.add(address);
    for (const row of minute.usage) {
      const local = localAddressOf(row);
      if (local !== null) subjects.add(local);
    }
  }
  return [...bySensor].flatMap(([sensorId, subjects]) =>
    [...subjects].map((subject) => ({ sensorId, subject })),
  );
}

/** Ids of the captures, made where they are new, and the database's time. */
async function ensureCaptures(trx: Queryable, uploads: readonly FactUpload[], makeIn: Queryable) {
  const wanted = new Map<string, { siteId: number; sensorId: number; name: string; role: string }>();
  const keyOf = (sensorId: number, name: string) => `${sensorId} ${name}`;
  for (const { origin, minutes } of uploads)
    for (const { capture, role } of minutes)
      wanted.set(keyOf(origin.sensorId, capture), { ...origin, name: capture, role });
  const sensorIds = [...new Set([...wanted.values()].map((one) => one.sensorId))];
  const { rows } = await sql<{ nowMs: number; id: number; sensorId: number; name: string; role: string }>`
    select (extract(epoch from svc_now()) * 1000)::float8 as now_ms, c.id, c.sensor_id, c.name, c.role
    from (select) one left join captures c on c.sensor_id = any(${sensorIds}::bigint[])`.execute(trx);
  const known = new Map(rows.map((row) => [keyOf(row.sensorId, row.name), row]));
  const ids = new Map([...known].map(([key, row]) => [key, row.id]));
  const changed = [...wanted].filter(([key, one]) => known.get(key)?.role !== one.role).map(([, one]) => one);
  if (changed.length > 0) {
    changed.sort((a, b) => a.sensorId - b.sensorId || (a.name < b.name ? -1 : 1));
    const made = await sql<{ id: number; sensorId: number; name: string }>`
      insert into captures (site_id, sensor_id, name, role)
      select * from unnest(${changed.map((one) => one.siteId)}::bigint[], ${changed.map((one) => one.sensorId)}::bigint[],
        ${changed.map((one) => one.name)}::text[], ${changed.map((one) => one.role)}::text[])
      on conflict (sensor_id, name) do update set role = excluded.role
      returning id, sensor_id, name`.execute(makeIn);
    for (const row of made.rows) ids.set(keyOf(row.sensorId, row.name), row.id);
  }
  const captureOf = (origin: FactOrigin, minute: TelemetryMinute) =>
    ids.get(keyOf(origin.sensorId, minute.capture))!;
  return { captureOf, nowMs: rows[0]!.nowMs };
}

// Captures, and when they failed.

/** A capture as PostgreSQL knows it. */
export interface KnownCapture {
  captureId: number;
  sensorId: number;
  siteId: number;
  name: string;
  role: facts.Vantage;
}

/** Captures by sensor and name; of one site, or with null of all. */
export async function listKnown(db: Queryable, siteId: number | null): Promise<KnownCapture[]> {
  const { rows } = await sql<KnownCapture>`
    select id as capture_id, sensor_id, site_id, name, role from captures
    where ${siteId}::bigint is null or site_id = ${siteId} order by sensor_id, name collate "C"`.execute(db);
  return rows;
}

/** The newest minute since that one in which each capture is known to have failed. */
export async function listFailed(db: Queryable, sinceMinute: number): Promise<Map<number, number>> {
  const { rows } = await sql<{ captureId: number; through: number }>`
    select c.id as capture_id, extract(epoch from max(g.to_minute))::float8 as through
    from captures c join telemetry_gaps g on g.site_id = c.site_id and g.sensor_id = c.sensor_id
    where g.to_minute >= to_timestamp(${sinceMinute}) and g.reason = 'capture_failed' and g.capture in ('', c.name)
    group by c.id`.execute(db);
  return new Map(rows.map((row) => [row.captureId, row.through]));
}
