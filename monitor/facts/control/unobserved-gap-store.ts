/**
 * Removes minutes that were observed whole from gaps that say they were not. It runs in the order of a sensor's uploads and
 * in the transaction that appends them: later, a full minute and the sum of several parts look the same.
 */
import { sql } from 'kysely';
import {
  isUnobserved,
  namesUnobserved,
  type ObservedMinute,
  wholeMinutes,
  withoutObserved,
} from '#contracts/sensor-api/unobserved-gaps.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { FactUpload, GapInput } from '../contract/facts.ts';

interface StoredGap extends GapInput {
  id: number;
  siteId: number;
  sensorId: number;
  recordedAt: string;
}

/** A minute that a capture of a sensor observed whole. */
export interface SensorMinute extends ObservedMinute {
  sensorId: number;
}

/**
 * Trims the stored gaps and those of the uploads; returns the uploads with the rest of their gaps. `findKnown` tells those of
 * some minutes for which the engine had stored something before these uploads.
 */
export async function trimUnobservedGaps(
  trx: Queryable,
  uploads: readonly FactUpload[],
  findKnown: (trx: Queryable, minutes: readonly SensorMinute[]) => Promise<readonly SensorMinute[]>,
): Promise<FactUpload[]> {
  const candidates = uploads.map((upload) =>
    wholeMinutes(upload).map((one): SensorMinute => ({ ...one, sensorId: upload.origin.sensorId })),
  );
  const all = candidates.flat();
  if (all.length === 0) return [...uploads];
  const stored = await findUnobservedGaps(trx, all);
  const told = uploads.flatMap(({ origin, gaps }) => gaps.map((gap) => ({ ...gap, ...origin })));
  const disputed = [...stored, ...told];
  const contradicting = all.filter((one) =>
    disputed.some((gap) => gap.sensorId === one.sensorId && namesUnobserved(gap, one)),
  );
  if (contradicting.length === 0) return [...uploads];
  const known = new Set((await findKnown(trx, contradicting)).map(keyOf));
  const captures = await findCaptures(trx, uploads);
  const left: FactUpload[] = [];
  let gaps = stored;
  for (const [i, upload] of uploads.entries()) {
    const { sensorId } = upload.origin;
    const observed = candidates[i]!.filter((one) => !known.has(keyOf(one)));
    const names = captures.get(sensorId) ?? [];
    gaps = gaps.flatMap((gap) => (gap.sensorId === sensorId ? withoutObserved(gap, observed, names) : [gap]));
    for (const [j, earlier] of left.entries())
      if (earlier.origin.sensorId === sensorId)
        left[j] = { ...earlier, gaps: earlier.gaps.flatMap((gap) => withoutObserved(gap, observed, names)) };
    left.push(upload);
    for (const minute of upload.minutes)
      known.add(keyOf({ sensorId, capture: minute.capture, minute: minute.minute }));
  }
  await replaceGaps(trx, stored, gaps);
  return left;
}

const keyOf = ({ sensorId, capture, minute }: SensorMinute) => `${sensorId} ${minute} ${capture}`;

/** Stored gaps of unobserved minutes around these minutes. */
async function findUnobservedGaps(trx: Queryable, minutes: readonly SensorMinute[]): Promise<StoredGap[]> {
  const spans = [...Map.groupBy(minutes, (one) => one.sensorId)].map(([sensorId, ofSensor]) => {
    const times = ofSensor.map((one) => one.minute);
    return {
      sensorId,
      from: times.reduce((a, b) => Math.min(a, b)),
      to: times.reduce((a, b) => Math.max(a, b)),
    };
  });
  const { rows } = await sql<StoredGap>`
    select g.id, g.site_id, g.sensor_id, g.capture, g.reason,
      extract(epoch from g.from_minute)::float8 as from_minute, extract(epoch from g.to_minute)::float8 as to_minute,
      g.recorded_at::text as recorded_at
    from unnest(${spans.map((one) => one.sensorId)}::bigint[], ${spans.map((one) => one.from)}::float8[],
      ${spans.map((one) => one.to)}::float8[]) as span (sensor_id, from_minute, to_minute)
    join telemetry_gaps g on g.sensor_id = span.sensor_id and g.to_minute >= to_timestamp(span.from_minute)
      and g.from_minute <= to_timestamp(span.to_minute)`.execute(trx);
  return rows.filter(isUnobserved);
}

/** The names of each sensor's captures, those of these uploads included. */
async function findCaptures(
  trx: Queryable,
  uploads: readonly FactUpload[],
): Promise<Map<number, readonly string[]>> {
  const told = Map.groupBy(uploads, ({ origin }) => origin.sensorId);
  const { rows } = await sql<{ sensorId: number; name: string }>`
    select sensor_id, name from captures
    where sensor_id = any(${[...told.keys()]}::bigint[])`.execute(trx);
  const stored = Map.groupBy(rows, (row) => row.sensorId);
  return new Map(
    [...told].map(([sensorId, ofSensor]) => {
      const names = ofSensor.flatMap(({ minutes }) => minutes.map((one) => one.capture));
      return [sensorId, [...new Set([...names, ...(stored.get(sensorId) ?? []).map((row) => row.name)])]];
    }),
  );
}

/** Replaces stored gaps by the rest of them. */
async function replaceGaps(trx: Queryable, stored: readonly StoredGap[], left: readonly StoredGap[]) {
  const kept = new Set(left);
  const gone = stored.filter((gap) => !kept.has(gap)).map((gap) => gap.id);
  if (gone.length === 0) return;
  const before = new Set(stored);
  const parts = left.filter((gap) => !before.has(gap));
  await sql`delete from telemetry_gaps where id = any(${gone}::bigint[])`.execute(trx);
  if (parts.length === 0) return;
  await sql`
    insert into telemetry_gaps (site_id, sensor_id, capture, from_minute, to_minute, reason, recorded_at)
    select site_id, sensor_id, capture, to_timestamp(from_minute), to_timestamp(to_minute), reason, recorded_at
    from unnest(${parts.map((gap) => gap.siteId)}::bigint[], ${parts.map((gap) => gap.sensorId)}::bigint[],
      ${parts.map((gap) => gap.capture)}::text[], ${parts.map((gap) => gap.fromMinute)}::float8[],
      ${parts.map((gap) => gap.toMinute)}::float8[], ${parts.map((gap) => gap.reason)}::text[],
      ${parts.map((gap) => gap.recordedAt)}::timestamptz[])
      as given (site_id, sensor_id, capture, from_minute, to_minute, reason, recorded_at)`.execute(trx);
}
