import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import type { LiveRequest } from '#contracts/admin-api/live.ts';
import type { StoredWindow } from '#monitor/live/index.ts';
import { send } from '#monitor/operations-client/testing/operations-stub.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createWorld, type World } from '#monitor/testing/world.ts';
import { type FeedsDeps, live } from '../index.ts';
import { target } from '../testing/feed-world.ts';

let world: World;
const posted: LiveRequest[] = [];
/** The answer for a target; null: no answer at all. */
let receiptOf: (id: number) => string = () => 'accepted';
let windows: StoredWindow[] = [];
let isLimited = false;
/** Sites and times of reads. */
let reads: [siteId: number, sinceMs: number][] = [];
let clock = createTestClock(0);

/** Seven seconds after the end of a bucket. */
let nowMs: number;
const ago = (count: number) => nowMs - 7000 - count * 10_000;

before(async () => {
  nowMs = Math.floor(Date.now() / 10_000) * 10_000 - 3000;
  world = await createWorld();
  world.operations.capabilities = {
    ...world.operations.capabilities,
    ...{ protect_live_ingest: true, protect_live_contract_version: 1 },
  };
  await world.connection.check();
});
after(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  posted.length = 0;
  reads = [];
  windows = [];
  isLimited = false;
  receiptOf = () => 'accepted';
  clock = createTestClock(nowMs);
  world.operations.pageSize = 1000;
  world.operations.targets = [];
  world.operations.intercept = (_request, response, path, body) => {
    if (path !== '/protect/live/') return false;
    const request = JSON.parse(body) as LiveRequest;
    posted.push(request);
    const receipts = request.targets.map(({ id }) => ({ id, receipt: receiptOf(id) }));
    send(response, 200, { receipts });
    return true;
  };
  await world.database.pool.query('truncate feed_cursors, allocation_targets, feed_states, leases');
});

function createLiveFeed(change: Partial<FeedsDeps> = {}) {
  const source: FeedsDeps['live'] = {
    async listWindows(siteId, sinceMs) {
      reads.push([siteId, sinceMs]);
      return { windows, isLimited };
    },
  };
  const made = world.createFeed({ live: source, clock, ...change });
  return made.find(live.name);
}

/** A tick of a process of its own. */
async function tickOf(feed: ReturnType<typeof createLiveFeed>) {
  await world.database.pool.query('delete from leases');
  const result = await feed.runOnce();
  if (typeof result === 'string') throw new Error(`no tick: ${result}`);
  return result;
}

/** A window with these addresses, each with ten bytes in. */
function windowOf(
  startedAtMs: number,
  addresses: readonly string[],
  more: Partial<StoredWindow> = {},
): StoredWindow {
  return {
    ...{
      sensorId: 1,
      capture: 'eth0',
      role: 'uplink',
      startedAtMs,
      observedMs: 10_000,
      packets: 9,
      ipBytes: 9,
    },
    ...{ parserDropped: 0, kernelDropped: 0, hostsLeftOut: 0, ...more },
    hosts: addresses.map((address) => ({ address, rxBytes: 10, txBytes: 5, packets: 2 })),
  };
}

const targetsOf = (count: number) => Array.from({ length: count }, (_, i) => target(`203.0.113.${i + 1}`));

test('NET-2.5.0, NET-2.5.2: a request has the contract, echoes the assignment, and has no attack or expected rate', async () => {
  const assignedAt = '2026-01-02T03:04:05.123456+02:00';
  world.operations.targets = [target('203.0.113.1', { assignedAt })];
  windows = [windowOf(ago(1), ['203.0.113.1', '203.0.113.99']), windowOf(ago(2), ['203.0.113.1'])];
  const { counts, error } = await tickOf(createLiveFeed());
  assert.equal(error, null);
  assert.deepEqual([counts.accepted, counts.points], [1, 2]);
  const [request] = posted;
  assert.deepEqual(
    { ...request, targets: [] },
    { contract_version: 1, source_site_id: world.siteId, cluster_ids: [7], targets: [] },
  );
  const [sent] = request!.targets;
  assert.equal(sent!.assigned_at, assignedAt);
  assert.deepEqual(
    sent!.series.map(({ timestamp }) => Date.parse(timestamp)),
    [ago(2), ago(1)],
  );
  for (const point of sent!.series)
    assert.deepEqual(
      [point.ddos_bps, point.ddos_pps, point.expected_bps, point.expected_pps, 'applications' in point],
      [null, null, null, null, false],
    );
  assert.ok(reads[0]![1] <= ago(30));
});

test('NET-4.4, NET-8: ticks of 50 follow one another until every target was visited, at most 10 in a request', async () => {
  const targets = targetsOf(120);
  world.operations.targets = targets;
  windows = [
    windowOf(
      ago(1),
      targets.map(({ address }) => address),
    ),
  ];
  const feed = createLiveFeed();
  const first = await tickOf(feed);
  assert.deepEqual([first.counts.visited, posted.length], [50, 5], 'one tick');
  assert.ok(posted.every((request) => request.targets.length <= 10));
  await tickOf(feed);
  await tickOf(feed);
  const visited = posted.flatMap((request) => request.targets.map(({ id }) => id));
  assert.equal(new Set(visited).size, 120, 'those that waited longest come first');
  posted.length = 0;
  // The loop's own run: all of them in one pass.
  await runLoopOnce(feed);
  assert.deepEqual(new Set(posted.flatMap((request) => request.targets.map(({ id }) => id))).size, 120);
  assert.equal(posted.length, 12, '5 + 5 + 2 requests');
});

/** One turn of the loop that `serve` runs. */
async function runLoopOnce(feed: ReturnType<typeof createLiveFeed>): Promise<void> {
  await feed.loop.start!();
  await new Promise<void>((done) => {
    const look = setInterval(async () => {
      const state = await feed.state();
      if (state?.lastCounts.visited !== 120) return;
      clearInterval(look);
      done();
    }, 20);
  });
  await feed.loop.stop!();
}

test('NET-4.4: a later batch reads the site again when the read is five seconds old, and not before', async () => {
  const targets = targetsOf(30);
  world.operations.targets = targets;
  windows = [
    windowOf(
      ago(1),
      targets.map(({ address }) => address),
    ),
  ];
  const seconds = [4.9, 0.2, 0];
  const usual = world.operations.intercept;
  world.operations.intercept = (request, response, path, body) => {
    if (path === '/protect/live/') clock.advance((seconds.shift() ?? 0) * 1000);
    return usual(request, response, path, body);
  };
  await tickOf(createLiveFeed());
  assert.equal(posted.length, 3);
  // The second and the third batch begin together: after 4.9 s there is no new read.
  assert.equal(reads.length, 1);
  reads = [];
  seconds.splice(0, 3, 5, 0, 0);
  await tickOf(createLiveFeed());
  assert.equal(reads.length, 2);
});

test('NET-4.4: a failed request costs its targets their turn and nothing else; another site has requests of its own', async () => {
  const site = await world.sites.create(systemActor, 'Second site');
  await world.sites.mapCluster(systemActor, 8, site.id);
  const targets = [
    target('203.0.113.1'),
    target('203.0.113.2', { clusterId: 8 }),
    target('203.0.113.3'),
    target('203.0.113.4', { clusterId: 99 }),
    target('10.0.0.1'),
  ];
  world.operations.targets = targets;
  windows = [
    windowOf(
      ago(1),
      targets.map(({ address }) => address),
    ),
  ];
  const { counts } = await tickOf(createLiveFeed());
  assert.deepEqual(
    posted.map((request) => [
      request.source_site_id,
      request.cluster_ids,
      request.targets.map(({ address }) => address),
    ]),
    [
      [world.siteId, [7], ['203.0.113.1', '203.0.113.3']],
      [site.id, [8], ['203.0.113.2']],
    ],
  );
  assert.deepEqual([counts.targets, counts.unmapped, counts.unsupported], [5, 1, 1]);
  await world.sites.mapCluster(systemActor, 8, null);
});

test('NET-2.5.3, NET-7: at a limit source_limited counts and coverage is unknown; without a valid window it is a failure', async () => {
  world.operations.targets = [target('203.0.113.1')];
  windows = [windowOf(ago(1), ['203.0.113.1'])];
  isLimited = true;
  const limited = await tickOf(createLiveFeed());
  assert.deepEqual([limited.error, limited.counts.source_limited, limited.counts.accepted], [null, 1, 1]);
  assert.equal(posted[0]!.targets[0]!.series[0]!.coverage, null);
  windows = [windowOf(ago(1), ['203.0.113.1'], { observedMs: 60_001 })];
  const feed = createLiveFeed();
  const failed = await tickOf(feed);
  assert.match(failed.error!, /a limit of one read was reached/);
  assert.deepEqual([failed.counts.source_limited, failed.counts.failed, posted.length], [1, 1, 1]);
  assert.match((await feed.state())!.lastError!, /a limit of one read was reached/);
});

test('NET-2.9, NET-4.10: an empty pass is no delivery, and a replay keeps the newest observation', async () => {
  world.operations.targets = [target('203.0.113.1')];
  const feed = createLiveFeed();
  assert.equal((await tickOf(feed)).counts.empty, 1);
  const empty = (await feed.state())!;
  assert.deepEqual(
    [empty.lastSuccessAtMs, empty.lastReceiptAtMs, empty.latestAcknowledged],
    [null, null, null],
  );
  assert.notEqual(empty.lastRunAtMs, null);
  windows = [windowOf(ago(1), ['203.0.113.1'])];
  await tickOf(feed);
  assert.equal((await feed.state())!.latestAcknowledged, ago(1) / 1000);
  windows = [windowOf(ago(3), ['203.0.113.1'])];
  receiptOf = () => 'unchanged';
  await tickOf(feed);
  const state = (await feed.state())!;
  assert.equal(state.latestAcknowledged, ago(1) / 1000);
  assert.equal(state.lastCounts.unchanged, 1);
});

test('NET-2.5.0: unmatched and source_conflict acknowledge nothing and are shown; a wrong receipt fails', async () => {
  const targets = [target('203.0.113.1'), target('203.0.113.2')];
  world.operations.targets = targets;
  windows = [
    windowOf(
      ago(1),
      targets.map(({ address }) => address),
    ),
  ];
  receiptOf = (id) => (id === targets[0]!.id ? 'unmatched' : 'source_conflict');
  const feed = createLiveFeed();
  await tickOf(feed);
  const state = (await feed.state())!;
  assert.deepEqual([state.lastReceiptAtMs, state.latestAcknowledged], [null, null]);
  assert.deepEqual([state.lastCounts.unmatched, state.lastCounts.source_conflict], [1, 1]);
  const held = await world.createFeed().listHeldBack();
  assert.deepEqual(
    held.map(({ feed: name, outcome }) => [name, outcome]),
    [['live', 'source_conflict']],
    'operations knows the other no more, so it is forgotten until it is listed again',
  );
  world.operations.intercept = (_request, response, path) => {
    if (path !== '/protect/live/') return false;
    send(response, 200, { receipts: [{ id: 1, receipt: 'accepted' }] });
    return true;
  };
  assert.match((await tickOf(createLiveFeed())).error!, /invalid or incomplete/);
});
