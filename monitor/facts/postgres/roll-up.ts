/**
 * Roll-ups are made from marks. Facts and their marks are committed together, so facts of the marks taken here are
 * visible to the statements after it; facts that commit later bring a mark of their own. Everything of a site's minute
 * or hour is one transaction under the site's lock, so a process that is killed leaves the marks as they were.
 */
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { pairsKeptMs } from '../contract/facts.ts';
import {
  beginHour,
  findDirtyDays,
  findDirtyHours,
  recomputeDay,
  recomputeHour,
  type SiteHour,
} from './hour-store.ts';
import * as minuteStore from './minute-store.ts';
import type { PartitionMaker } from './partition-store.ts';
import { hourSeconds } from './span-store.ts';

/** Minutes of one transaction. */
const marksMax = 500;
const judgedMax = 30;

/** Asked between two transactions; false ends the work there, and what is left waits for the next. */
export type MayGoOn = () => Promise<boolean>;

export async function rollUp(
  db: Queryable,
  partitions: PartitionMaker,
  hours: 'none' | 'settled' | 'all',
  mayGoOn: MayGoOn = async () => true,
): Promise<void> {
  await rollUpMinutes(db);
  if (hours === 'none') return;
  const pairsFrom = ((await readNowMs(db)) - pairsKeptMs) / 1000;
  await judgeMinutes(db, partitions, hours, pairsFrom, mayGoOn);
  for (const bucket of await minuteStore.findDirtyBuckets(db)) {
    if (!(await mayGoOn())) return;
    await ensureRollUps(db, partitions, bucket.start, pairsFrom);
    await underLock(db, bucket.siteId, (trx) => minuteStore.recomputeBucket(trx, bucket, pairsFrom));
  }
  for (const siteHour of await findDirtyHours(db, hours)) {
    if (!(await mayGoOn())) return;
    await rollUpHour(db, partitions, siteHour, pairsFrom);
  }
  for (const siteDay of await findDirtyDays(db, hours)) {
    if (!(await mayGoOn())) return;
    await ensureRollUps(db, partitions, siteDay.day, pairsFrom);
    await underLock(db, siteDay.siteId, (trx) => recomputeDay(trx, siteDay));
  }
}

/** One transaction with the site's roll-up lock. */
function underLock(db: Queryable, siteId: number, work: (trx: Queryable) => Promise<void>): Promise<void> {
  return db.transaction().execute(async (trx) => {
    await minuteStore.lockSite(trx, siteId);
    await work(trx);
  });
}

async function rollUpMinutes(db: Queryable): Promise<void> {
  for (;;) {
    const sites = await minuteStore.findMarkedSites(db);
    if (sites.length === 0) return;
    for (const siteId of sites) {
      await underLock(db, siteId, async (trx) => {
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
  mayGoOn: MayGoOn,
): Promise<void> {
  for (;;) {
    const due = await minuteStore.findUnjudged(db, which, judgedMax);
    if (!due || !(await mayGoOn())) return;
    for (const minute of due.minutes) await ensureRollUps(db, partitions, minute, pairsFrom);
    await underLock(db, due.siteId, async (trx) => {
      const minutes = await minuteStore.beginMinutes(trx, due.siteId, { minutes: due.minutes });
      await minuteStore.judgeMinutes(trx, due.siteId, minutes, pairsFrom);
    });
  }
}

async function rollUpHour(db: Queryable, partitions: PartitionMaker, siteHour: SiteHour, pairsFrom: number) {
  const { siteId, hour } = siteHour;
  // Readers take pairs of whole young hours alone; of an older one none is needed.
  const hasPairs = hour >= pairsFrom;
  await ensureRollUps(db, partitions, hour, pairsFrom);
  await underLock(db, siteId, async (trx) => {
    if (!(await beginHour(trx, siteHour))) return;
    const left = await minuteStore.beginMinutes(trx, siteId, { from: hour, to: hour + hourSeconds });
    await minuteStore.judgeMinutes(trx, siteId, left, pairsFrom);
    await recomputeHour(trx, siteHour, hasPairs);
  });
}

async function ensureRollUps(db: Queryable, partitions: PartitionMaker, minute: number, pairsFrom: number) {
  const hour = Math.floor(minute / hourSeconds) * hourSeconds;
  await partitions.ensureRollUps(db, hour, hour + hourSeconds > pairsFrom);
}
