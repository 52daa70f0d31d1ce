/**
 * Roll-ups are made from marks. Facts and their marks are committed together, so facts of the marks taken here are
 * visible to the statements after it; facts that commit later bring a mark of their own. Everything of a site's minute
 * or hour is one transaction under the site's lock, so a process that is killed leaves the marks as they were.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { pairsKeptMs } from './facts.ts';
import type { PartitionMaker } from './partition-store.ts';
import * as store from './rollup-store.ts';

/** Minutes of one transaction. */
const marksMax = 500;

export async function rollUp(
  db: Queryable,
  partitions: PartitionMaker,
  hours: 'none' | 'settled' | 'all',
): Promise<void> {
  await rollUpMinutes(db);
  if (hours === 'none') return;
  const dirty = await store.findDirtyHours(db, hours);
  if (dirty.length === 0) return;
  const pairsFrom = (await store.readNow(db)) - pairsKeptMs / 1000;
  for (const siteHour of dirty) await rollUpHour(db, partitions, siteHour, pairsFrom);
}

async function rollUpMinutes(db: Queryable): Promise<void> {
  for (;;) {
    const sites = await store.findMarkedSites(db);
    if (sites.length === 0) return;
    for (const siteId of sites) {
      await db.transaction().execute(async (trx) => {
        await store.lockSite(trx, siteId);
        const minutes = await store.takeMarks(trx, siteId, marksMax);
        if (minutes.length > 0) await store.recomputeSiteMinutes(trx, siteId, minutes);
      });
    }
  }
}

async function rollUpHour(
  db: Queryable,
  partitions: PartitionMaker,
  siteHour: store.SiteHour,
  pairsFrom: number,
): Promise<void> {
  const { siteId, hour } = siteHour;
  // Readers take pairs of whole young hours alone; of an older one none is needed.
  const hasPairs = hour >= pairsFrom;
  await partitions.ensureRollUps(db, hour, hasPairs);
  await db.transaction().execute(async (trx) => {
    await store.lockSite(trx, siteId);
    if (await store.beginHour(trx, siteHour)) await store.recomputeHour(trx, siteHour, hasPairs);
  });
}
