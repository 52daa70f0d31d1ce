import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import type { TelemetryRequest } from '#contracts/admin-api/schemas.ts';
import { createWorld } from '#monitor/testing/world.ts';

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
  const post = async ({ targets }: TelemetryRequest) => {
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
    intervalSeconds,
    sites: {
      listClusters: () => {
        ticks.push(0);
        return world.sites.listClusters();
      },
    },
    // Every address has traffic; reading it is measured elsewhere.
    traffic: {
      listCaptures: async () => [],
      readAddressMinutes: async (_site: number, _address: string, from: number) => [
        { isGap: false as const, minute: from, rxBytes: 1, txBytes: 1, packets: 1, coverage: 1 },
      ],
    },
    applications: { readAddressApplications: async () => [] },
    connection: {
      ...world.connection,
      open: async () => {
        const open = await world.connection.open();
        return (
          open && { ...open, checkedAtMs: clock.nowMs(), client: { ...open.client, postTelemetry: post } }
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
  assert.ok(mostUnderWay <= 4, `${mostUnderWay} requests at a time`);
  assert.ok(Math.max(...gaps) <= 120_000, `${Math.max(...gaps)} ms between two visits`);
  assert.ok(
    [...visits.values()].every((times) => times.length <= 3),
    'nobody is visited more often than others',
  );
});

function visitCounts(visits: ReadonlyMap<number, readonly number[]>, fleet: number): number[] {
  return visits.size < fleet ? [0] : [...visits.values()].map((times) => times.length);
}
