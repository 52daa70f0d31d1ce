import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock, systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { readConfig } from '#monitor/config.ts';
import { captureMinute, createMonitorWorld, createSpool, usageRow } from '#monitor/testing/index.ts';
import { createApplications, createRankingLoop } from './index.ts';

test('NET-8.8: the 24-hour ranking is the last computed one, cached for 90 seconds by default', async () => {
  await using world = await createMonitorWorld();
  const clock = createTestClock(0);
  const { facts, siteId } = world;
  const db = () => world.database.db;
  const loop = createRankingLoop({ db, facts, clock: systemClock, reporter: silentReporter });
  const { rankingHoldSeconds } = readConfig({});
  const applications = createApplications({ db, facts, clock, rankingHoldSeconds });
  const bytes = async () => (await applications.ranking(siteId, 'outbound'))?.use.bytes;
  const spool = createSpool();
  assert.equal(await bytes(), undefined, 'not computed yet, and not cached');

  await world.apply(spool.upload([captureMinute({ usage: [usageRow()] })]));
  assert.equal(await loop.runOnce(), true);
  assert.equal(await bytes(), 1100);
  const ranking = (await applications.ranking(siteId, 'outbound'))!;
  assert.equal(ranking.toMs - ranking.fromMs, 86_400_000);
  assert.deepEqual(
    ranking.use,
    await applications.list(siteId, 'outbound', ranking.fromMs, ranking.toMs, 200),
    'the stored ranking equals the facts',
  );

  await world.apply(spool.upload([captureMinute({ usage: [usageRow({ serverBytes: 5000 })] })]));
  await loop.runOnce();
  await clock.advance(89_000);
  assert.equal(await bytes(), 1100, 'held');
  await clock.advance(2_000);
  assert.equal(await bytes(), 6200, 'read again');
  await loop.stop();
});

test('NET-8.8: rankings are computed every five minutes', async () => {
  await using world = await createMonitorWorld();
  const clock = createTestClock(0);
  const times: number[] = [];
  const facts = {
    newestMinutes: async () => {
      times.push(clock.nowMs());
      return new Map<number, number>();
    },
    rankApplications: () => assert.fail(),
  };
  const db = () => world.database.db;
  const loop = createRankingLoop({ db, facts, clock, reporter: silentReporter });
  await loop.start();
  for (const ms of [0, 299_999, 1]) {
    await clock.advance(ms);
    while (clock.waiting() === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await loop.stop();
  assert.deepEqual(times, [0, 300_000]);
});

test('NET-8.R3: a range around the last day has the top connections of the stored ranking, unless it is too old', async () => {
  await using world = await createMonitorWorld();
  const { facts, siteId } = world;
  const db = () => world.database.db;
  await world.apply(createSpool().upload([captureMinute({ usage: [usageRow()] })]));
  await createRankingLoop({ db, facts, clock: systemClock, reporter: silentReporter }).runOnce();
  // As if another pair was the busiest when the ranking was computed.
  const then = { client: '192.0.2.99', server: '198.51.100.99', pairs: 7 };
  await world.database.pool.query(
    `update application_rankings set ranking = jsonb_set(ranking, '{rows,0,topConnection}', $1) where view = 'outbound'`,
    [JSON.stringify(then)],
  );
  const topOfWeek = async () => {
    const applications = createApplications({ db, facts, clock: systemClock, rankingHoldSeconds: 0 });
    const nowMs = Math.ceil(Date.now() / 60_000) * 60_000;
    const week = await applications.list(siteId, 'outbound', nowMs - 7 * 86_400_000, nowMs, 10);
    return week.rows[0]?.topConnection;
  };
  assert.deepEqual(await topOfWeek(), then);
  await world.database.pool.query(
    "update application_rankings set computed_at = computed_at - interval '20 minutes'",
  );
  assert.deepEqual(await topOfWeek(), { client: '192.0.2.10', server: '198.51.100.7', pairs: 1 });
});
