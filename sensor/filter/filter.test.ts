/** The sensor's filter at a real interface. Needs root. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { AttackDirection } from '#contracts/incidents.ts';
import type { FilteredSecond } from '#sensor/detector/index.ts';
import { attachCounter, detachCounter, openCounter, preparePins } from '#sensor/kernel/attachment.ts';
import { attachFilter, detachFilter } from '#sensor/kernel/filter.ts';
import { createFlood, victim } from '#sensor/testing/attack-traffic.ts';
import { rulesAgainst } from '#sensor/testing/filter-runs.ts';
import { openFrameSender } from '#sensor/testing/frame-sender.ts';
import { uniqueName } from '#sensor/testing/link-names.ts';
import { createFilterService } from './index.ts';

const packets = 50;

test('rules of the plan drop at the uplink in both directions; without a minute of learning they only count, and what can not be is told with its reason', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
}, async (t) => {
  const [here, there] = [uniqueName(), uniqueName()];
  execFileSync('ip', ['link', 'add', here, 'type', 'veth', 'peer', 'name', there]);
  for (const end of [here, there]) execFileSync('ip', ['link', 'set', end, 'arp', 'off', 'up']);
  preparePins([here], { uid: 0, gid: 0 });
  // In this order the program that counts would see first what is sent.
  attachFilter(here);
  attachCounter(here);
  attachFilter(here);
  const { counter } = openCounter(here);
  counter.setLocal({ prefixes: ['192.0.2.0/24'], addresses: [] }, false);
  const countSent = () =>
    [0, 1]
      .flatMap(
        (ago) => counter.readMinute((Math.floor(Date.now() / 60_000) - ago) * 60).hosts.get(victim(4)) ?? [],
      )
      .reduce((sum, { txBytes }) => sum + txBytes, 0);
  let onRows: (rows: readonly FilteredSecond[]) => void = () => {};
  const service = createFilterService({
    captures: [
      {
        name: here,
        role: 'uplink',
        source: { kind: 'live', interfaceName: here, ringMiB: 2, method: 'auto' },
      },
    ],
    ...{ isWanted: true, clock: systemClock, reporter: silentReporter },
    onSecond: (_capture, _second, rows) => onRows(rows),
  });
  t.after(async () => {
    await service.stop();
    counter.close();
    detachFilter(here);
    detachCounter(here);
    spawnSync('ip', ['link', 'del', here]);
    preparePins([], { uid: 0, gid: 0 });
  });
  /** The first second in which the rule did something, or that has a problem. */
  const seen = (send: boolean, direction: AttackDirection = 'inbound') =>
    new Promise<FilteredSecond>((resolve) => {
      onRows = ([row]) => {
        if (row && (row.counts.matched.packets > 0 || !send)) resolve(row);
      };
      const step = createFlood({ class: 'udp_flood', version: 4, direction, ratio: 1 }, 3);
      const sender = openFrameSender(direction === 'inbound' ? there : here);
      for (let i = 0; send && i < packets; i += 1) {
        const frame = Buffer.from(step()[0]!);
        if (direction === 'inbound') sender.send(frame);
        // Its sender is told that it was dropped.
        else assert.throws(() => sender.send(frame), /not sent/);
      }
      sender.close();
    });
  const rule = (beganAtMs: number, direction: AttackDirection = 'inbound') =>
    service.follow(rulesAgainst(victim(4), { class: 'udp_flood', ports: [] }, { beganAtMs, direction }));
  await service.start();
  while (!service.isReady()) await systemClock.wait(10);
  rule(Date.now() + 120_000);
  const dropping = await seen(true);
  assert.deepEqual(
    [dropping.counts.dropped.packets, dropping.isDropping, dropping.problem],
    [packets, true, ''],
  );
  assert.deepEqual(service.status()[0], { capture: here, rules: 1, dropsPps: packets, why: null });
  rule(Date.now() + 120_000, 'outbound');
  const quarantined = await seen(true, 'outbound');
  assert.deepEqual([quarantined.direction, quarantined.counts.dropped.packets], ['outbound', packets]);
  assert.equal(countSent(), 0, 'what is dropped is not counted as sent');
  rule(Date.now());
  const counting = await seen(true);
  assert.deepEqual([counting.counts.dropped.packets, counting.isDropping], [0, false]);
  assert.match(counting.problem, /only counts: when the attack began the filter had not yet learned/);
  detachFilter(here);
  assert.match((await seen(false)).problem, /the filter was taken off/);
  assert.match(service.status()[0]!.why!, /taken off/);
});
