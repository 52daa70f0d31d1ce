/** The week of the customers' servers, as operations is sent it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from 'typebox/value';
import { TelemetryRequest } from '#contracts/admin-api/schemas.ts';
import { attackOfDay } from './attacks.ts';
import { gapOfDay } from './build-upload.ts';
import { deliverWeek } from './deliver-week.ts';
import { planSite, seedOfDemo } from './plan.ts';

const plan = planSite(seedOfDemo);
const [hypervisor] = plan.hypervisors;
const hour = 3_600;

/** What is delivered of the customers' servers when it is `nowMs`, by address and minute. */
async function deliver(nowMs: number, fromMinute: number) {
  const requests: TelemetryRequest[] = [];
  const clusterId = 9;
  const target = { billing_account_id: 1, virtual_machine_id: 1, assigned_at: '2026-01-01T00:00:00Z' };
  await deliverWeek(
    {
      ...{ plan, clock: { nowMs: () => nowMs }, pace: { pause: async () => {} } },
      ...{ signal: new AbortController().signal, source: { siteId: 2, clusterId } },
      listTargets: async () => [
        ...hypervisor!.servers.map(({ address }, id) => ({
          ...target,
          id: id + 1,
          cluster_id: clusterId,
          address,
        })),
        // Of another cluster, and of another server in this one.
        { ...target, id: 70, cluster_id: 1, address: hypervisor!.servers[0]!.address },
        { ...target, id: 71, cluster_id: clusterId, address: '192.0.2.99' },
      ],
      post: async (request) => {
        assert.ok(Value.Check(TelemetryRequest, request), 'as the contract has it');
        requests.push(request);
      },
    },
    fromMinute,
  );
  return requests;
}

test('each minute of the customers’ servers that is too old for the feed is delivered once, but for gaps', async () => {
  const nowMs = Date.UTC(2026, 10, 29, 12, 34);
  const fromMinute = nowMs / 1000 - 48 * hour;
  const requests = await deliver(nowMs, fromMinute);
  const seen = new Map<number, Set<number>>();
  for (const { targets } of requests)
    for (const { id, series } of targets)
      for (const { timestamp } of series) {
        const minutes = seen.get(id) ?? new Set();
        assert.ok(!minutes.has(Date.parse(timestamp)), `${id} ${timestamp} comes twice`);
        seen.set(id, minutes.add(Date.parse(timestamp)));
      }
  assert.deepEqual([...seen.keys()].sort(), [1, 2, 3]);
  const wanted: number[] = [];
  // Whole hours, up to one that the feed has too.
  for (
    let minute = Date.UTC(2026, 10, 27, 13) / 1000;
    minute < Date.UTC(2026, 10, 28, 14) / 1000;
    minute += 60
  ) {
    const gap = gapOfDay(plan.seed, 0, minute);
    if (!gap || minute < gap.fromMinute || minute >= gap.endMinute) wanted.push(minute * 1000);
  }
  for (const minutes of seen.values())
    assert.deepEqual(
      [...minutes].sort((a, b) => a - b),
      wanted,
    );
});

test('an attack of the week is delivered as one, at the attacked server alone', async () => {
  let day = Date.UTC(2026, 10, 20) / 1000;
  while (attackOfDay(plan.seed, day) === null) day += 24 * hour;
  const attack = attackOfDay(plan.seed, day)!;
  const requests = await deliver((attack.endMinute + 25 * hour) * 1000, attack.fromMinute - hour);
  const minutesOf = (id: number) =>
    requests
      .flatMap(({ targets }) => targets.filter((target) => target.id === id).flatMap(({ series }) => series))
      .filter(({ ddos_pps: pps }) => pps !== 0);
  for (const [place] of hypervisor!.servers.entries()) {
    const attacked = minutesOf(place + 1);
    if (place !== attack.server) assert.deepEqual(attacked, []);
    else
      for (const { timestamp, ddos_pps, inbound_bps } of attacked) {
        const minute = Date.parse(timestamp) / 1000;
        assert.ok(minute >= attack.fromMinute && minute < attack.endMinute, timestamp);
        assert.equal(ddos_pps, attack.pps);
        assert.ok(inbound_bps! >= 0.99 * attack.pps * attack.packetBytes * 8, 'it is a part of the traffic');
      }
  }
  assert.ok(minutesOf(attack.server + 1).length > 0);
});
