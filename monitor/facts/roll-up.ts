/**
 * Roll-ups are made from marks. Facts and their marks are committed together, so facts of the marks taken here are
 * visible to the statements after it; facts that commit later bring a mark of their own. Everything of a site's minute
 * or hour is one transaction under the site's lock, so a process that is killed leaves the marks as they were.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { pairsKeptMs } from './facts.ts';
import * as minuteStore from './minute-store.ts';
import type { PartitionMaker } from './partition-store.ts';
import * as store from './rollup-store.ts';
import { hourSeconds } from './span-store.ts';

/** Minutes of one transaction. */
const marksMax = 500;
const judgedMax = 30;

export async function rollUp(
  db: Queryable,
  partitions: PartitionMaker,
  hours: 'none' | 'settled' | 'all',
): Promise<void> {
  await rollUpMinutes(db);
  if (hours === 'none') return;
  const pairsFrom = (await store.readNow(db)) - pairsKeptMs / 1000;
  await judgeMinutes(db, partitions, hours, pairsFrom);
  for (const siteTen of await store.findDirtyTens(db)) {
    await ensureRollUps(db, partitions, siteTen.start, pairsFrom);
    await db.transaction().execute(async (trx) => {
      await minuteStore.lockSite(trx, siteTen.siteId);
      await store.recomputeTen(trx, siteTen, pairsFrom);
    });
  }
  for (const siteHour of await store.findDirtyHours(db, hours))
    await rollUpHour(db, partitions, siteHour, pairsFrom);
  for (const siteDay of await store.findDirtyDays(db, hours)) {
    await ensureRollUps(db, partitions, siteDay.day, pairsFrom);
    await db.transaction().execute(async (trx) => {
      await minuteStore.lockSite(trx, siteDay.siteId);
      await store.recomputeDay(trx, siteDay);
    });
  }
}

async function rollUpMinutes(db: Queryable): Promise<void> {
  for (;;) {
    const sites = await minuteStore.findMarkedSites(db);
    if (sites.length === 0) return;
    for (const siteId of sites) {
      await db.transaction().execute(async (trx) => {
        await minuteStore.lockSite(trx, siteId);
        const minutes = await minuteStore.takeMarks(trx, siteId, marksMax);
        if (minutes.length > 0) await minuteStore.recomputeSiteMinutes(trx, siteId, minutes);
      });
    }
  }
}

/** Judges what has settled, newest first: that is what people look at. */
async function judgeMinutes(
  db: Queryable,
  partitions: PartitionMaker,
  which: 'settled' | 'all',
  pairsFrom: number,
): Promise<void> {
  for (;;) {
    const due = await minuteStore.findUnjudged(db, which, judgedMax);
    if (!due) return;
    for (const minute of due.minutes) await ensureRollUps(db, partitions, minute, pairsFrom);
    await db.transaction().execute(async (trx) => {
      await minuteStore.lockSite(trx, due.siteId);
      const minutes = await minuteStore.beginMinutes(trx, due.siteId, { minutes: due.minutes });
      await minuteStore.judgeMinutes(trx, due.siteId, minutes, pairsFrom);
    });
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
  await ensureRollUps(db, partitions, hour, pairsFrom);
  await db.transaction().execute(async (trx) => {
    await minuteStore.lockSite(trx, siteId);
    if (!(await store.beginHour(trx, siteHour))) return;
    const left = await minuteStore.beginMinutes(trx, siteId, { from: hour, to: hour + hourSeconds });
    await minuteStore.judgeMinutes(trx, siteId, left, pairsFrom);
    await store.recomputeHour(trx, siteHour, hasPairs);
  });
}

async function ensureRollUps(
  db: Queryable,
  partitions: PartitionMaker,
  minute: number,
  pairsFrom: number,
): Promise<void> {
  const hour = Math.floor(minute / hourSeconds) * hourSeconds;
  await partitions.ensureRollUps(db, hour, hour + hourSeconds > pairsFrom);
}
