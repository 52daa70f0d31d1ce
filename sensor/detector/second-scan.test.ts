import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import { binLength, Direction, kindCount, SlotTable } from '#sensor/attack-counters/index.ts';
import { dividedThresholds } from '#sensor/testing/attack-traffic.ts';
import { isHot } from './heat.ts';
import { SecondScan } from './second-scan.ts';
import { thresholdSet } from './threshold-book.ts';
import { directionNames } from './thresholds.ts';
import { emptyCounts } from './traffic.ts';
import { windowSeconds } from './trigger.ts';

const hostCount = 300;
const prefixCount = 3;
const sets = [thresholdSet(dividedThresholds(100)), thresholdSet(dividedThresholds(400))];

/** Hosts with random counters in random seconds; every fourth has no prefix. `most`: packets of a kind at most. */
function randomCounters(seed: number, most: number, bytesEach: number) {
  const random = seededRandom(seed);
  const pick = (count: number) => Math.floor(random() * count);
  const hosts = new SlotTable(512, 2, windowSeconds, seed);
  const prefixes = new SlotTable(4, 1, windowSeconds, seed);
  for (let i = 0; i < prefixCount; i += 1) prefixes.locate(4, 0, 0, 0, i << 8);
  for (let i = 0; i < hostCount; i += 1) hosts.setGroup(hosts.locate(4, 0, 0, 0, 5000 + i), i % sets.length);
  for (let second = 20; second < 29; second += 1) {
    for (const table of [hosts, prefixes]) {
      table.open(second);
      for (let slot = 0; slot < table.count; slot += 1) {
        for (let kinds = pick(4) - 1; kinds > 0; kinds -= 1) {
          const packets = 1 + pick(most);
          const direction = table === hosts ? pick(2) : Direction.inbound;
          table.add(slot, direction, pick(kindCount), packets, packets * bytesEach, pick(2), pick(3));
        }
      }
    }
  }
  const prefixOf = (host: number) => (host % (prefixCount + 1)) - 1;
  const senders = new SlotTable(4, 1, windowSeconds, seed);
  return { ...{ hosts, prefixes, senders, prefixOf }, detailOf: () => null, watch() {}, unwatch() {} };
}

for (const [title, most, bytesEach] of [
  ['of usual counters', 700, 200],
  ['of counters above 2^31', 30, 2 ** 28],
] as const)
  test(`one reading of a second ${title} says of each address, prefix and of all what their counters say`, () => {
    const second = 28;
    let hotHosts = 0;
    for (let seed = 1; seed <= 10; seed += 1) {
      const counters = randomCounters(seed, most, bytesEach);
      const { hosts, prefixes, prefixOf } = counters;
      const scan = new SecondScan(counters, sets);
      // What was read before leaves nothing behind.
      for (const one of [second - 1, second]) scan.read(one);
      const total = emptyCounts();
      const ofPrefixes = new Float64Array(prefixCount * binLength);
      for (let slot = 0; slot < prefixCount; slot += 1) {
        prefixes.addBin(slot, Direction.inbound, second, ofPrefixes, slot * binLength);
        prefixes.addBin(slot, Direction.inbound, second, total);
      }
      const hostsIn = [0, 0, 0];
      for (let slot = 0; slot < hostCount; slot += 1) {
        const { host, hostLimits } = sets[hosts.group(slot)]!;
        for (const direction of directionNames) {
          const counts = emptyCounts();
          hosts.addBin(slot, Direction[direction], second, counts);
          const expected = isHot(counts, hostLimits, Direction[direction], host[direction]);
          assert.equal(scan.hot[slot * 2 + Direction[direction]], expected ? 1 : 0);
          if (expected) hotHosts += 1;
        }
        hosts.addBin(slot, Direction.inbound, second, total);
        if (prefixOf(slot) < 0) continue;
        if (hosts.lastSecond(slot) > second - windowSeconds) hostsIn[prefixOf(slot)]! += 1;
        hosts.addBin(slot, Direction.inbound, second, ofPrefixes, prefixOf(slot) * binLength);
      }
      assert.deepEqual(scan.prefixCounts.subarray(0, ofPrefixes.length), ofPrefixes);
      assert.deepEqual([...scan.hostsIn.subarray(0, prefixCount)], hostsIn);
      assert.deepEqual(scan.total(), total);
    }
    assert.ok(hotHosts > 50, `${hotHosts} hosts are worth a closer look`);
  });
