/** Minutes of captures for which something was stored before an append. */
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { FactUpload } from '../contract/facts.ts';
import { findCommitted } from '../control/token-store.ts';
import type { SensorMinute } from '../control/unobserved-gap-store.ts';
import type { Engine } from './engine-store.ts';
import { ch, numbers, seconds, texts } from './statement.ts';

interface StoredMinute extends SensorMinute {
  spoolId: string;
  sequence: string;
  appendedAt: number;
}

/**
 * Those of these minutes for which something is stored. What an append has sent whose transaction did not commit is not yet
 * stored: it comes again, and finds its own rows here.
 */
export async function findKnown(
  { engine, trx, uploads }: { engine: Engine; trx: Queryable; uploads: readonly FactUpload[] },
  minutes: readonly SensorMinute[],
): Promise<SensorMinute[]> {
  const siteIds = [...new Set(uploads.map(({ origin }) => origin.siteId))];
  const stored = await engine.rows<StoredMinute>(ch`
    select sensor_id as sensorId, capture, toUnixTimestamp(minute) as minute, toString(spool_id) as spoolId,
      toString(sequence) as sequence, toUnixTimestamp(max(appended_at)) as appendedAt
    from capture_minutes
    where site_id in ${numbers(siteIds)} and toUnixTimestamp(minute) in ${seconds([...new Set(minutes.map((one) => one.minute))])}
      and (sensor_id, capture, toUnixTimestamp(capture_minutes.minute)) in
        (select arrayJoin(arrayZip(${numbers(minutes.map((one) => one.sensorId))}, ${texts(minutes.map((one) => one.capture))},
          ${seconds(minutes.map((one) => one.minute))})))
    group by sensorId, capture, minute, spoolId, sequence`);
  if (stored.length === 0) return [];
  const committed = (await findCommitted(trx, stored)).map((index) => stored[index]!);
  const own = new Set(uploads.map(({ origin, token }) => nameOf({ ...origin, ...token })));
  return committed.filter((one) => !own.has(nameOf(one)));
}

const nameOf = (one: { sensorId: number; spoolId: string; sequence: number | string }) =>
  `${one.sensorId} ${one.spoolId.toLowerCase()} ${one.sequence}`;
