import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { addMinutes, minutesAgo } from '#monitor/testing/facts.ts';
import type { World } from '#monitor/testing/world.ts';
import type { FeedsDeps } from './index.ts';
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

test('NET-2.4.0: a request has the contract, echoes the assignment exactly and gives bytes back exactly', async () => {
  const minute = minutesAgo(2);
  const assignedAt = '2026-01-02T03:04:05.123456+02:00';
  world.operations.targets = [target('203.0.113.10', { assignedAt })];
  await addMinutes(world, sensor, [
    { minute, address: '203.0.113.10', rxBytes: 1_000_003, txBytes: 77, packets: 901 },
  ]);
  const { counts, error } = await tick();
  assert.equal(error, null);
  assert.equal(counts.accepted, 1);
  const [request] = world.operations.posted;
  assert.equal(request!.contract_version, 1);
  assert.equal(request!.source_site_id, world.siteId);
  assert.deepEqual(request!.cluster_ids, [7]);
  const [sent] = request!.targets;
  assert.equal(sent!.assigned_at, assignedAt);
  assert.equal(sent!.address, '203.0.113.10');
  const point = sent!.series.find((entry) => startOf(entry) === minute)!;
  assert.equal(point.inbound_bps, (1_000_003 * 8) / 60);
  assert.equal((point.inbound_bps! * 60) / 8, 1_000_003);
  assert.equal(point.outbound_bps, (77 * 8) / 60);
  assert.equal(point.pps, 901 / 60);
  assert.equal(point.coverage, 1);
  for (const unknown of ['ddos_bps', 'ddos_pps', 'expected_bps', 'expected_pps'] as const) {
    assert.equal(point[unknown], null);
  }
});

test('NET-2.4.2: a minute without data is a gap and is not sent; overlapping captures are not added', async () => {
  const address = '203.0.113.11';
  world.operations.targets = [target(address)];
  await addMinutes(world, sensor, [
    { minute: minutesAgo(10), address, rxBytes: 600, txBytes: 60, packets: 9 },
    {
      minute: minutesAgo(10),
      address,
      rxBytes: 500,
      txBytes: 50,
      packets: 8,
      capture: 'br0',
      role: 'bridge',
    },
    { minute: minutesAgo(7), address, rxBytes: 300, txBytes: 30, packets: 3 },
  ]);
  await tick();
  assert.deepEqual(series().map(startOf), [minutesAgo(10), minutesAgo(7)]);
  assert.equal(series()[0]!.inbound_bps, 80);
});

test('NET-2.4.3: coverage is null where the parser lost packets, and a partial minute carries its share', async () => {
  const address = '203.0.113.12';
  world.operations.targets = [target(address)];
  await addMinutes(world, sensor, [
    { minute: minutesAgo(9), address, rxBytes: 60, txBytes: 60, packets: 2, parserDropped: 1 },
    { minute: minutesAgo(8), address, rxBytes: 60, txBytes: 60, packets: 2, observedMs: 30_000 },
  ]);
  await tick();
  assert.deepEqual(
    series().map((point) => point.coverage),
    [null, 0.5],
  );
});

test('NET-2.3: only mapped clusters and globally routable unicast are sent; the rest is counted', async () => {
  const addresses = [
    '203.0.113.13',
    '10.0.0.1',
    '100.64.0.1',
    '127.0.0.1',
    '169.254.1.1',
    'fe80::1',
    'fc00::1',
  ];
  world.operations.targets = [
    ...addresses.map((address) => target(address)),
    target('203.0.113.14', { clusterId: 8 }),
  ];
  for (const address of addresses) {
    await addMinutes(world, sensor, [{ minute: minutesAgo(2), address, rxBytes: 6, packets: 1 }]);
  }
  const { counts } = await tick();
  assert.deepEqual(
    world.operations.posted.map((request) => request.targets[0]!.address),
    ['203.0.113.13'],
  );
  assert.equal(counts.unsupported, 6);
  assert.equal(counts.unmapped, 1);
});

test('NET-2.3: minutes before the assignment are never sent', async () => {
  const address = '203.0.113.15';
  const assignedAt = new Date((minutesAgo(4) + 1) * 1000).toISOString();
  world.operations.targets = [target(address, { assignedAt })];
  const minutes = [6, 5, 4, 3, 2].map((ago) => ({
    minute: minutesAgo(ago),
    address,
    rxBytes: 6,
    packets: 1,
  }));
  await addMinutes(world, sensor, minutes);
  await tick();
  assert.deepEqual(series().map(startOf), [minutesAgo(3), minutesAgo(2)]);
});

test('NET-4.3: a failed request keeps the cursor; nothing is lost and the next tick delivers it', async () => {
  const address = '203.0.113.16';
  world.operations.targets = [target(address)];
  const minutes = [300, 200, 20, 2].map((ago) => ({
    minute: minutesAgo(ago),
    address,
    rxBytes: ago,
    packets: 1,
  }));
  await addMinutes(world, sensor, minutes);
  const faults: World['operations']['intercept'][] = [
    (_request, response) => {
      response.writeHead(500).end('{"error": "a secret of theirs"}');
      return true;
    },
    (request) => {
      request.socket.destroy();
      return true;
    },
    (_request, response) => {
      response.writeHead(200, { 'content-length': '500' }).write('{"receipts": [');
      setImmediate(() => response.destroy());
      return true;
    },
    (_request, response) => {
      response.writeHead(200).end('{"receipts": []}');
      return true;
    },
    (_request, response) => {
      response.writeHead(200).end('{"receipts": [{"id": 999999, "receipt": "accepted"}]}');
      return true;
    },
    (_request, response) => {
      response.writeHead(302, { location: '/elsewhere' }).end();
      return true;
    },
  ];
  const delivered = new Set<number>();
  for (let i = 0; i < faults.length + 4; i += 1) {
    const fault = faults[i];
    world.operations.intercept = (request, response, path, body) =>
      fault !== undefined && path === '/protect/telemetry/' && fault(request, response, path, body);
    const before = world.operations.posted.length;
    const { counts, error } = await tick();
    assert.equal(counts.failed, fault ? 1 : 0);
    assert.ok(fault ? error !== null && !error.includes('secret') : error === null);
    for (const request of world.operations.posted.slice(before)) {
      for (const point of request.targets[0]!.series) delivered.add(startOf(point));
    }
  }
  for (const { minute } of minutes) assert.ok(delivered.has(minute), `minute ${minute}`);
});

test('NET-4.3: one allocation that always fails does not delay others', async () => {
  const addresses = ['203.0.113.17', '203.0.113.18', '203.0.113.19'];
  world.operations.targets = addresses.map((address) => target(address));
  for (const address of addresses) {
    await addMinutes(world, sensor, [{ minute: minutesAgo(2), address, rxBytes: 6, packets: 1 }]);
  }
  world.operations.intercept = (_request, response, path, body) => {
    if (path !== '/protect/telemetry/' || !body.includes(addresses[0]!)) return false;
    response.writeHead(503).end();
    return true;
  };
  for (let i = 0; i < 3; i += 1) {
    const { counts } = await tick();
    assert.equal(counts.accepted, 2);
    assert.equal(counts.failed, 1);
  }
});

test('NET-4.3: an allocation whose failure ends the tick costs its own turn alone', async () => {
  const addresses = ['203.0.113.26', '203.0.113.27'];
  world.operations.targets = addresses.map((address) => target(address));
  for (const address of addresses) {
    await addMinutes(world, sensor, [{ minute: minutesAgo(2), address, rxBytes: 6, packets: 1 }]);
  }
  // A refused token ends a tick: the next call would be refused as well.
  world.operations.intercept = (_request, response, path, body) => {
    if (path !== '/protect/telemetry/' || !body.includes(addresses[0]!)) return false;
    response.writeHead(401).end();
    return true;
  };
  assert.equal((await tick()).counts.accepted, 0);
  assert.equal((await tick()).counts.accepted, 1, 'the other one is first in line now');
});

test('NET-4.3: an unmatched or conflicting receipt acknowledges nothing', async () => {
  const address = '203.0.113.20';
  world.operations.targets = [target(address)];
  await addMinutes(world, sensor, [{ minute: minutesAgo(90), address, rxBytes: 6, packets: 1 }]);
  for (const receipt of ['unmatched', 'source_conflict'] as const) {
    world.operations.receipt = () => receipt;
    const { counts } = await tick();
    assert.equal(counts[receipt], 1);
    assert.deepEqual(series(world.operations.posted.length - 1).map(startOf), [minutesAgo(90)]);
  }
  assert.equal((await lastFeed.state())!.lastSuccessAtMs, null);
  world.operations.receipt = () => 'unchanged';
  await tick();
  const { length } = world.operations.posted;
  assert.equal(length, 3, 'the minute was sent until it was acknowledged');
  await tick();
  assert.equal(world.operations.posted.length, length, 'and the catching up went on after it');
});

test('NET-4.3: data that comes late for a sent minute is sent again by the sweep', async () => {
  const address = '203.0.113.21';
  world.operations.targets = [target(address)];
  await addMinutes(world, sensor, [{ minute: minutesAgo(400), address, rxBytes: 6, packets: 1 }]);
  const feed = world.createFeed();
  const sentRates = () =>
    world.operations.posted
      .flatMap((request) => request.targets[0]!.series)
      .filter((point) => startOf(point) === minutesAgo(400))
      .map((point) => point.inbound_bps);
  for (let i = 0; i < 60 && sentRates().length === 0; i += 1) await tick(feed);
  assert.deepEqual(sentRates(), [0.8]);
  await addMinutes(world, sensor, [{ minute: minutesAgo(400), address, rxBytes: 9, packets: 1 }]);
  for (let i = 0; i < 60 && sentRates().length === 1; i += 1) await tick(feed);
  assert.deepEqual(sentRates(), [0.8, 2]);
});

test('NET-2.9: a holder that slept past its lease moves no cursor, and its successor delivers', async () => {
  const address = '203.0.113.22';
  world.operations.targets = [target(address)];
  await addMinutes(world, sensor, [{ minute: minutesAgo(2), address, rxBytes: 6, packets: 1 }]);
  const sleeper = world.createFeed();
  const successor = world.createFeed();
  let isFirst = true;
  world.operations.intercept = (_request, response, path) => {
    if (path !== '/protect/telemetry/' || !isFirst) return false;
    isFirst = false;
    // While the sleeper waits for its receipt, its lease runs out and the other one takes over.
    void (async () => {
      await world.database.pool.query("update leases set expires_at = svc_now() - interval '1 second'");
      await successor.runOnce();
      await world.database.pool.query(
        `update feed_cursors set position = '{"deliveredUntil": 946684800, "sweptUntil": 946684800}'`,
      );
      const id = world.operations.targets[0]!.id;
      response.writeHead(200).end(JSON.stringify({ receipts: [{ id, receipt: 'accepted' }] }));
    })();
    return true;
  };
  assert.equal(await sleeper.runOnce(), 'idle');
  const { rows } = await world.database.pool.query(
    "select extract(year from to_timestamp((position->>'deliveredUntil')::float8))::int as year from feed_cursors",
  );
  assert.equal(rows[0]!.year, 2000, 'the sleeper wrote nothing');
  await successor.loop.stop();
});

test('NET-2.9: the state keeps last run, last success, a fixed error text and counts; an empty pass is no success', async () => {
  const feed = lastFeed;
  world.operations.targets = [target('203.0.113.23')];
  await tick(feed);
  const empty = (await feed.state())!;
  assert.ok(empty.lastRunAtMs !== null);
  assert.equal(empty.lastSuccessAtMs, null, 'NET-4.10: nothing was delivered yet');
  assert.equal(empty.lastCounts.empty, 1);

  const minute = minutesAgo(2);
  await addMinutes(world, sensor, [{ minute, address: '203.0.113.23', rxBytes: 6, packets: 1 }]);
  await tick(feed);
  const success = (await feed.state())!;
  assert.ok(success.lastSuccessAtMs !== null);
  assert.equal(success.latestAcknowledged, minute);

  world.operations.intercept = (_request, response) => {
    response.writeHead(500).end('<h1>a stack trace with a password</h1>');
    return true;
  };
  await tick(feed);
  const failed = (await feed.state())!;
  assert.match(failed.lastError!, /^Operations reported an internal error/);
  assert.equal(failed.lastSuccessAtMs, success.lastSuccessAtMs);
  assert.equal(failed.latestAcknowledged, minute);
});

test('NET-5.1: without the permission nothing is sent and the error says what to edit; granted, the same token works', async () => {
  const address = '203.0.113.24';
  world.operations.targets = [target(address)];
  await addMinutes(world, sensor, [{ minute: minutesAgo(2), address, rxBytes: 6, packets: 1 }]);
  const granted = world.operations.capabilities;
  world.operations.capabilities = {};
  await world.connection.check();
  const feed = world.createFeed();
  const refused = await tick(feed);
  assert.match(refused.error!, /lacks the permission/);
  assert.equal(world.operations.posted.length, 0);
  world.operations.capabilities = granted;
  const { error, counts } = await tick(feed);
  assert.equal(error, null);
  assert.equal(counts.accepted, 1);
});

test('NET-4.2: a disabled connection sends nothing', async () => {
  await world.connection.save(systemActor, { baseUrl: world.operations.url, token: null, isEnabled: false });
  const feed = world.createFeed();
  assert.equal(await feed.runOnce(), 'idle');
  await feed.loop.stop();
  await world.connection.save(systemActor, { baseUrl: world.operations.url, token: null, isEnabled: true });
});

test('NET-2.9: cursors that nothing visited for two days are forgotten', async () => {
  world.operations.targets = [target('203.0.113.25')];
  const feed = world.createFeed();
  await tick(feed);
  assert.equal(await feed.forgetCursors(Date.now() - 2 * 86_400_000), 0);
  assert.equal(await feed.forgetCursors(Date.now() + 1_000), 1);
});

test('NET-4.6: the traffic loop runs every 30 seconds, never more often than every 5, and 0 leaves it to a worker of its own', () => {
  const setting = (value: string) =>
    readConfig({ SVC_OPS_DDOS_SYNC_SECONDS: value }).feeds.telemetry?.intervalSeconds;
  assert.equal(readConfig({}).feeds.telemetry?.intervalSeconds, 30);
  assert.equal(setting('5'), 5);
  assert.throws(() => setting('4'), /SVC_OPS_DDOS_SYNC_SECONDS/);
  const loopsOf = (environment: NodeJS.ProcessEnv) =>
    compose(readConfig({ SVC_LOG_LEVEL: 'error', ...environment })).loops.map((part) => part.name);
  assert.ok(loopsOf({}).includes('loop sync_ops_ddos'));
  assert.ok(!loopsOf({ SVC_OPS_DDOS_SYNC: '0' }).includes('loop sync_ops_ddos'));
});

test('NET-4.3: an allocation whose stored minutes can not be read keeps no other from being delivered', async () => {
  const [bad, ...good] = ['203.0.113.60', '203.0.113.61', '203.0.113.62'];
  world.operations.targets = [bad!, ...good].map((address) => target(address));
  for (const address of [bad!, ...good])
    await addMinutes(world, sensor, [{ minute: minutesAgo(5), address, rxBytes: 60 }]);
  const applications = {
    readAddressesApplications: async (asked: readonly { address: string }[]) => {
      if (asked.some(({ address }) => address === bad)) throw new Error('a row of nonsense');
      return asked.map(() => []);
    },
  } as unknown as FeedsDeps['applications'];
  const feed = world.createFeed({ applications });
  for (let i = 0; i < 2; i += 1) {
    const { counts, error } = await runTick(feed);
    assert.match(error!, /can not be read/);
    assert.equal(counts.failed, 1);
  }
  const delivered = world.operations.posted.flatMap(({ targets }) => targets.map(({ address }) => address));
  assert.deepEqual([...new Set(delivered)].sort(), good);
});
