import assert from 'node:assert/strict';
import { test } from 'node:test';
import type pg from 'pg';
import { createTestClock } from '#common/clock/index.ts';
import type { TelemetryRequest } from '#contracts/admin-api/schemas.ts';
import { addMinutes, addSensor, minutesAgo } from '#monitor/testing/facts.ts';
import { createWorld } from '#monitor/testing/world.ts';
import { minutes } from './index.ts';

/** What a simulated receiver takes for one request. */
const requestMs = 40;
const intervalSeconds = 5;
const fleet = 600;

test('NET-4.3: ticks of 50 follow one another while allocations are due, one request each and four at a time', async () => {
  await using world = await createWorld();
  const minute = Math.floor(Date.now() / 60_000) * 60 - 120;
  const assignedAt = new Date((minute - 3600) * 1000).toISOString();
  world.operations.pageSize = 1_000;
  world.operations.targets = Array.from({ length: fleet }, (_, i) => ({
    id: i + 1,
    billing_account_id: 1,
    virtual_machine_id: i + 1,
    cluster_id: 7,
    address: `203.${100 + Math.floor(i / 65_536)}.${Math.floor(i / 256) % 256}.${i % 256}`,
    assigned_at: assignedAt,
  }));
  const clock = createTestClock(Date.now());
  /** By allocation, when it was delivered. */
  const visits = new Map<number, number[]>();
  /** Requests of each tick; a tick begins by asking for the clusters. */
  const ticks: number[] = [];
  let underWay = 0;
  let mostUnderWay = 0;
  // Requests under way at the same time take their time together.
  const post = async (request: unknown) => {
    const { targets } = request as TelemetryRequest;
    assert.equal(targets.length, 1, 'one request is one allocation');
    underWay += 1;
    ticks[ticks.length - 1]! += 1;
    mostUnderWay = Math.max(mostUnderWay, underWay);
    await clock.wait(requestMs);
    underWay -= 1;
    const { id } = targets[0]!;
    visits.set(id, [...(visits.get(id) ?? []), clock.monotonicMs()]);
    return { receipts: [{ id, receipt: 'accepted' as const }] };
  };
  const feed = world.createFeed({
    clock,
    feeds: [minutes],
    cadences: { telemetry: { isOn: true, intervalSeconds } },
    sites: {
      listClusters: () => {
        ticks.push(0);
        return world.sites.listClusters();
      },
    },
    // Every address has traffic; reading it is measured elsewhere.
    traffic: {
      listCaptures: async () => [],
      listSpeakers: async () => [],
      readAddressesMinutes: async (ranges) =>
        ranges.map(({ fromMinute: minute }) => [
          {
            isGap: false as const,
            minute,
            captureId: 1,
            rxBytes: 1,
            txBytes: 1,
            packets: 1,
            coverage: 1,
            loss: null,
          },
        ]),
    },
    applications: { readAddressesApplications: async (ranges) => ranges.map(() => []) },
    connection: {
      ...world.connection,
      open: async () => {
        const open = await world.connection.open();
        return (
          open && {
            ...open,
            checkedAtMs: clock.nowMs(),
            client: { ...open.client, deliver: (_contract: unknown, request: unknown) => post(request) },
          }
        );
      },
    },
  });
  await feed.loop.start();
  while (Math.min(...visitCounts(visits, fleet)) < 2) {
    if (underWay > 0) await clock.advance(requestMs);
    else if (clock.waiting() > 0 && visits.size > 0) await clock.advance(1_000);
    else await new Promise((wake) => setImmediate(wake));
  }
  await feed.loop.stop();
  const gaps = [...visits.values()].map(([first, second]) => second! - first!);
  assert.equal(visits.size, fleet);
  assert.equal(Math.max(...ticks), 50, 'allocations of a tick');
  assert.ok(mostUnderWay <= 4, `${mostUnderWay} requests at a time`);
  assert.ok(Math.max(...gaps) <= 120_000, `${Math.max(...gaps)} ms between two visits`);
  assert.ok(
    [...visits.values()].every((times) => times.length <= 3),
    'no allocation is visited more often than the others',
  );
});

test('NET-4.3: what a tick asks of the database does not grow with its allocations', async () => {
  await using world = await createWorld();
  const sensor = await addSensor(world);
  world.operations.pageSize = 1_000;
  const statements = countStatements(world.database.pool);
  const sentIn = async (allocations: number, assignedAgo = 60) => {
    const targets = Array.from({ length: allocations }, (_, i) => ({
      id: 1_000 * allocations + i,
      billing_account_id: 1,
      virtual_machine_id: i + 1,
      cluster_id: 7,
      address: `203.0.113.${i}`,
      assigned_at: new Date(minutesAgo(assignedAgo) * 1000).toISOString(),
    }));
    world.operations.targets = targets;
    world.operations.posted.length = 0;
    await world.database.pool.query('truncate allocation_targets, feed_cursors, leases');
    const before = statements();
    const result = await world.createFeed().runOnce();
    assert.ok(typeof result !== 'string' && result.error === null);
    assert.equal(world.operations.posted.length, allocations);
    return statements() - before;
  };
  const observed = Array.from({ length: 50 }, (_, i) =>
    [40, 30, 3, 2].map((ago) => ({
      minute: minutesAgo(ago),
      address: `203.0.113.${i}`,
      rxBytes: 1,
      packets: 1,
    })),
  );
  await addMinutes(world, sensor, observed.flat());
  const [few, many] = [await sentIn(5), await sentIn(50)];
  assert.ok(many <= few + 2, `${few} statements for 5 allocations, ${many} for 50`);
  // Hours without data, stretch after stretch.
  const [fewOld, manyOld] = [await sentIn(5, 400), await sentIn(50, 400)];
  assert.ok(manyOld <= fewOld + 2, `${fewOld} statements for 5 old allocations, ${manyOld} for 50`);
});

/** Counts what the pool's connections ask from now on. */
function countStatements(pool: pg.Pool): () => number {
  let count = 0;
  const seen = new WeakSet<object>();
  pool.on('acquire', (client) => {
    if (seen.has(client)) return;
    seen.add(client);
    const query = client.query.bind(client) as (...given: unknown[]) => unknown;
    const counted = (...given: unknown[]) => {
      count += 1;
      return query(...given);
    };
    client.query = counted as typeof client.query;
  });
  return () => count;
}

function visitCounts(visits: ReadonlyMap<number, readonly number[]>, fleet: number): number[] {
  return visits.size < fleet ? [0] : [...visits.values()].map((times) => times.length);
}
