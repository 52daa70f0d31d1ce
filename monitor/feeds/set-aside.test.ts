import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { addMinutes, minutesAgo } from '#monitor/testing/facts.ts';
import type { World } from '#monitor/testing/world.ts';
import {
  createFeedWorld,
  type MinuteFeed,
  resetFeed,
  runTick,
  seriesOf,
  startOf,
  target,
} from './testing/feed-world.ts';

let world: World;
let sensor: number;
/** The feed of the running test, where one is enough. */
let lastFeed: MinuteFeed;
before(async () => {
  ({ world, sensor } = await createFeedWorld());
});
after(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  lastFeed = await resetFeed(world);
});

const tick = (feed = lastFeed) => runTick(feed);
const series = (index = 0) => seriesOf(world, index);

test('NET-4.3: a minute that no link carries is set aside, and the newest minutes are delivered', async () => {
  const address = '203.0.113.28';
  const [absurd, good] = [minutesAgo(4), minutesAgo(2)];
  world.operations.targets = [target(address)];
  // Two uploads of one window add: facts from before the bounds of intake.
  await addMinutes(world, sensor, [
    { minute: absurd, address, rxBytes: 2 ** 51, packets: 1 },
    { minute: good, address, rxBytes: 6, packets: 1 },
  ]);
  const { counts, error } = await tick();
  assert.equal(error, null);
  assert.deepEqual(series().map(startOf), [good]);
  assert.deepEqual([counts.accepted, counts.set_aside], [1, 1]);
  const state = (await lastFeed.state())!;
  assert.ok(state.lastSuccessAtMs !== null);
  assert.equal(state.latestAcknowledged, good);
  const [held] = await lastFeed.listHeldBack();
  assert.deepEqual(
    [held?.item, held?.outcome, held?.setAside, held?.newestSetAside, held?.reason],
    [address, 'accepted', 1, absurd, 'rate_implausible'],
  );
});

test('NET-4.3: minutes that an older receiver names in a 422 are left out of the next request, until they change', async () => {
  const address = '203.0.113.29';
  world.operations.targets = [target(address)];
  const minutes = [4, 3, 2].map((ago) => ({ minute: minutesAgo(ago), address, rxBytes: ago, packets: 1 }));
  const [refused, second, third] = minutes;
  await addMinutes(world, sensor, minutes);
  const refuseLarge = (limit: number) => {
    world.operations.intercept = (_request, response, path, body) => {
      if (path !== '/protect/telemetry/') return false;
      const { series: points } = JSON.parse(body).targets[0] as { series: { inbound_bps: number }[] };
      const fields = points.flatMap((point, i) =>
        point.inbound_bps > limit
          ? [{ path: `targets.0.series.${i}.inbound_bps`, message: 'x', code: 'y' }]
          : [],
      );
      if (fields.length === 0) return false;
      response.writeHead(422).end(JSON.stringify({ error: { code: 'validation_failed', fields } }));
      return true;
    };
  };
  refuseLarge((3.5 * 8) / 60);
  const first = await tick();
  assert.deepEqual([first.counts.refused, first.counts.set_aside, first.error], [1, 1, null]);
  assert.equal(world.operations.posted.length, 0);
  const later = await tick();
  assert.equal(later.counts.accepted, 1);
  assert.deepEqual(series().map(startOf), [second!.minute, third!.minute]);
  assert.equal((await lastFeed.state())!.latestAcknowledged, third!.minute);
  // It changes, so it is another point, and is tried again.
  world.operations.intercept = () => false;
  await addMinutes(world, sensor, [{ minute: refused!.minute, address, rxBytes: 1, packets: 1 }]);
  const isSentAgain = () =>
    world.operations.posted
      .slice(1)
      .some(({ targets }) => targets[0]!.series.some((one) => startOf(one) === refused!.minute));
  for (let i = 0; i < 80 && !isSentAgain(); i += 1) await tick();
  assert.ok(isSentAgain());
});

test('NET-4.3: what operations sets aside by name is not sent again, and the rest counts as delivered', async () => {
  const address = '203.0.113.30';
  world.operations.targets = [target(address)];
  const minutes = [3, 2].map((ago) => ({ minute: minutesAgo(ago), address, rxBytes: ago, packets: 1 }));
  const [bad, good] = minutes;
  await addMinutes(world, sensor, minutes);
  world.operations.intercept = (_request, response, path, body) => {
    if (path !== '/protect/telemetry/') return false;
    const [{ id, series: points }] = JSON.parse(body).targets as [
      { id: number; series: { timestamp: string }[] },
    ];
    world.operations.posted.push(JSON.parse(body));
    const aside = points.filter(({ timestamp }) => Date.parse(timestamp) / 1000 === bad!.minute);
    const set_aside = aside.map(({ timestamp }) => ({ id, timestamp, reason: 'rate_implausible' }));
    response.writeHead(200).end(JSON.stringify({ receipts: [{ id, receipt: 'accepted' }], set_aside }));
    return true;
  };
  assert.equal((await tick()).counts.set_aside, 1);
  await tick();
  assert.deepEqual(series(1).map(startOf), [good!.minute]);
});

test('NET-4.10: one allocation that is always refused does not keep the feed from its last success', async () => {
  const addresses = ['203.0.113.31', '203.0.113.32'];
  world.operations.targets = addresses.map((address) => target(address));
  for (const address of addresses) {
    await addMinutes(world, sensor, [{ minute: minutesAgo(2), address, rxBytes: 6, packets: 1 }]);
  }
  world.operations.intercept = (_request, response, path, body) => {
    if (path !== '/protect/telemetry/' || !body.includes(addresses[0]!)) return false;
    response.writeHead(422).end('{}');
    return true;
  };
  const { counts, error } = await tick();
  assert.deepEqual([counts.failed, counts.accepted], [1, 1]);
  assert.match(error!, /refused the request/);
  assert.ok((await lastFeed.state())!.lastSuccessAtMs !== null);
  const held = await lastFeed.listHeldBack();
  assert.deepEqual(
    held.map((row) => [row.item, row.outcome]),
    [[addresses[0]!, 'refused']],
  );
});
