import type { Queryable } from '#service-kit/postgres/index.ts';
import { type AddressMinute, joinMinutes } from './address-minute.ts';
import * as store from './store.ts';

/** An exact address's minutes in order, one entry for each of the range. */
export async function readAddressMinutes(
  db: Queryable,
  range: { siteId: number; address: string; fromMinute: number; toMinute: number },
): Promise<AddressMinute[]> {
  const [sightings, seen, knownCaptures] = await Promise.all([
    store.findSightings(db, range),
    store.findCapturesSeen(db, range),
    store.findLastCaptures(db, range),
  ]);
  const capturesSeen = new Map<number, number[]>();
  for (const { minute, captureId } of seen) {
    const captures = capturesSeen.get(minute);
    if (captures) captures.push(captureId);
    else capturesSeen.set(minute, [captureId]);
  }
  const captureIds = [...new Set([...knownCaptures, ...seen.map((row) => row.captureId)])];
  const [listening, gaps] = await Promise.all([
    store.findListening(db, { ...range, captureIds }),
    store.findCaptureGaps(db, { ...range, captureIds }),
  ]);
  return joinMinutes({ ...range, knownCaptures, sightings, capturesSeen, listening, gaps });
}
