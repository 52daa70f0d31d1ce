import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ScanPlan } from '#contracts/sensor-api/port-scans.ts';
import { type ChooseInput, chooseScans } from './choose-scans.ts';

const now = Date.parse('2026-11-23T08:00:00Z');
const hour = 3_600_000;
const boundary = now - 2 * hour;

function plan(targets: number, requests: number[] = [], withdrawn: number[] = []): ScanPlan {
  return {
    ...{ plan_version: 1, revision: 3 },
    scan_policy: { version: 1, daily_full_scan_at: new Date(boundary).toISOString() },
    targets: Array.from({ length: targets }, (_, i) => ({
      ...{
        target_id: `t${i}`,
        address: `198.51.100.${i}`,
        interface: 'br0',
        source_address: '198.51.100.250',
      },
      ...{ vm_id: 1, nic_id: 1, inventory_at: '2026-11-23T08:00:00Z' },
    })),
    requests: requests.map((i) => ({ scan_request_id: `r${i}`, target_id: `t${i}` })),
    withdrawn: withdrawn.map((i) => `r${i}`),
  };
}
function choose(
  input: Partial<ChooseInput> & { plan: ScanPlan },
  last: Record<string, number> = {},
  used: string[] = [],
) {
  const past = {
    wasStarted: (id: string) => used.includes(id),
    lastStartedAtMs: (id: string, profile: string) => last[`${id} ${profile}`] ?? null,
  };
  const chosen = chooseScans({ running: [], past, nowMs: now, mayScan: () => true, ...input });
  return chosen.map(
    ({ target, pool, requestId }) => `${pool} ${target.target_id}${requestId ? ` ${requestId}` : ''}`,
  );
}

test('NET-8.2: two of customers, eight daily and two hourly, on twelve addresses, a request first', () => {
  const chosen = choose({ plan: plan(40, [7, 5, 6]) });
  assert.deepEqual(chosen.slice(0, 2), ['customer t7 r7', 'customer t5 r5']);
  const count = (pool: string) => chosen.filter((one) => one.startsWith(pool)).length;
  assert.deepEqual([count('customer'), count('daily'), count('hourly'), chosen.length], [2, 8, 2, 12]);
  assert.equal(new Set(chosen.map((one) => one.split(' ')[1])).size, 12);
  const busy = Array.from({ length: 8 }, (_, i) => ({ pool: 'daily' as const, address: `198.51.100.${i}` }));
  assert.deepEqual(
    choose({ plan: plan(9, [1]), running: busy }),
    ['hourly t8'],
    'an address has one scan at a time',
  );
});

test('NET-8.2: no scan begins while twelve addresses are scanned, of any pool', () => {
  const running = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ pool: 'daily' as const, address: `198.51.100.${i}` }));
  assert.deepEqual(choose({ plan: plan(40, [30, 31]), running: running(11) }), ['customer t30 r30']);
  assert.deepEqual(choose({ plan: plan(40, [30, 31]), running: running(12) }), []);
  const { scan_policy, ...hourlyAlone } = plan(40);
  assert.ok(scan_policy);
  assert.equal(choose({ plan: hourlyAlone }).length, 2);
});

test('NET-2.7.3, NET-2.7.9: a request runs once, and its stale copy does not hold up the hourly scan', () => {
  assert.deepEqual(choose({ plan: plan(1, [0]) }, { 't0 full': now }, ['r0']), ['hourly t0']);
  assert.deepEqual(choose({ plan: plan(1, [0], [0]) }, { 't0 full': now, 't0 common': now }), []);
});

test('NET-2.7.4, NET-8.2: a daily scan is due once after its boundary; an hourly one an hour after the attempt before', () => {
  const due = (full: number, common: number) =>
    choose({ plan: plan(1) }, { 't0 full': full, 't0 common': common });
  assert.deepEqual(due(boundary - 1, now), ['daily t0']);
  assert.deepEqual(due(boundary, now), []);
  assert.deepEqual(due(boundary, now - hour), ['hourly t0']);
  assert.deepEqual(due(boundary, now - hour + 1), []);
  const { scan_policy, ...without } = plan(1);
  assert.ok(scan_policy);
  assert.deepEqual(choose({ plan: without }, { 't0 common': now }), [], 'no policy, no daily scan');
  const later = {
    ...plan(1),
    scan_policy: { version: 1 as const, daily_full_scan_at: '2026-11-23T09:00:00Z' },
  };
  assert.deepEqual(choose({ plan: later }, { 't0 common': now }), [], 'a boundary that has not come');
});

test('NET-8.2: a clock that was set back or ahead delays neither schedule for longer than its interval', () => {
  const due = (full: number, common: number) =>
    choose({ plan: plan(1) }, { 't0 full': full, 't0 common': common });
  assert.deepEqual(due(boundary, now + 72 * hour), ['hourly t0'], 'three days ahead when it started');
  assert.deepEqual(due(boundary, now + 2 * 60_000), ['hourly t0']);
  assert.deepEqual(due(boundary, now + 1000), [], 'a clock that is corrected by a second');
  assert.deepEqual(due(now + 72 * hour, now), ['daily t0']);
  // The clock is ten days ahead of the monitor's, which plans the boundary of a day ago.
  const ahead = { plan: plan(1), nowMs: now + 240 * hour };
  const last = (hours: number) => ({ 't0 full': ahead.nowMs - hours * hour, 't0 common': ahead.nowMs });
  assert.deepEqual([choose(ahead, last(25)), choose(ahead, last(26))], [[], ['daily t0']]);
});

test('NET-2.7.8: what this host may not scan takes no place; the longest wait is first', () => {
  const last = { 't0 common': now - hour, 't1 common': now - 3 * hour, 't2 common': now - 2 * hour };
  const all = { ...last, 't0 full': now, 't1 full': now, 't2 full': now };
  assert.deepEqual(choose({ plan: plan(3) }, all), ['hourly t1', 'hourly t2']);
  const mayScan = (target: { target_id: string }) => target.target_id !== 't1';
  assert.deepEqual(choose({ plan: plan(3), mayScan }, all), ['hourly t2', 'hourly t0']);
});
