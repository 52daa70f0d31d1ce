import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import type { RefreshResult } from './refresh.ts';
import { listProducts, readAdvisories } from './store.ts';
import { type NvdRecord, records } from './testing/records/index.ts';
import { createRefreshWorld, type RefreshWorld } from './testing/refresh-world.ts';

const pauseMsMin = 6_000;
const leaseMs = 301_000;
/** Due in each round; together they take six requests. */
const due = ['openssh', 'nginx', 'mariadb'];
const requests = 6;

test('NET-2.6.4: one worker refreshes at a time, and one that was frozen past its lease stores nothing over its follower', async () => {
  await using world = await createRefreshWorld();
  const random = seededRandom(3);
  for (let round = 0; round < 6; round += 1) await takeOver(world, round, random);
});

/**
 * The worker with the lease is frozen while an answer is under way. Another one takes over and finds newer records, and the first
 * goes on, in the middle of the other's pass or behind it.
 */
async function takeOver(world: RefreshWorld, round: number, random: () => number): Promise<void> {
  await prepare(world, `old ${round}`);
  const frozenAt = 1 + Math.floor(random() * requests);
  const resumedAt = 1 + Math.floor(random() * (requests + 1));
  const frozen = Promise.withResolvers<void>();
  const resume = Promise.withResolvers<void>();
  let sent = 0;
  const first = world
    .createRefresher({
      around: async (fetch) => {
        const page = await fetch();
        sent += 1;
        if (sent === frozenAt) {
          frozen.resolve();
          await resume.promise;
        }
        return page;
      },
    })
    .runOnce(() => {});
  await frozen.promise;
  await world.pass(leaseMs);
  await world.nvd.setRecords(revisionOf(`new ${round}`));
  let answered = 0;
  const resumeFirst = async () => {
    resume.resolve();
    await first;
  };
  const second = await world
    .createRefresher({
      around: async (fetch) => {
        answered += 1;
        if (answered === resumedAt) await resumeFirst();
        return fetch();
      },
    })
    .runOnce(() => {});
  await resumeFirst();
  await judge(world, round, (await first) as RefreshResult, second);
}

async function prepare(world: RefreshWorld, revision: string): Promise<void> {
  await world.nvd.setRecords(revisionOf(revision));
  await world.nvd.asked();
  // Some time in which nothing is asked, and no lease of the round before.
  await world.pass(leaseMs);
  const { pool } = world.database;
  await pool.query('truncate vulnerability_products, vulnerability_advisories');
  await pool.query(
    `insert into vulnerability_products (product, refreshed_at)
     select product, svc_now() from unnest($1::text[]) as p(product)`,
    [['httpd', 'mysql', 'postgresql', 'redis', 'mongodb', 'memcached', 'vsftpd', 'proftpd']],
  );
}

const revisionOf = (summary: string): NvdRecord[] =>
  records.map((record) => ({
    cve: { ...record.cve, descriptions: [{ lang: 'en', value: summary }] },
  }));

async function judge(
  world: RefreshWorld,
  round: number,
  first: RefreshResult,
  second: RefreshResult | 'held',
): Promise<void> {
  const { db } = world.database;
  assert.ok(second !== 'held', 'the second worker gets the lease');
  assert.equal(second.error, null);
  assert.notEqual(first.error, null, 'the frozen worker notices');
  const times = (await world.nvd.asked()).map(({ atMs }) => atMs);
  const gap = Math.min(...times.slice(1).map((at, i) => at - times[i]!));
  assert.ok(gap >= pauseMsMin, `two requests were ${gap} ms apart`);
  const stored = await listProducts(db);
  for (const product of due) {
    const expected = first.refreshed.includes(product) ? `old ${round}` : `new ${round}`;
    const summaries = (await readAdvisories(db, product))!.map(({ summary }) => summary);
    assert.deepEqual([...new Set(summaries)], [expected], product);
    assert.equal(stored.find((one) => one.product === product)?.error, null, product);
  }
}
