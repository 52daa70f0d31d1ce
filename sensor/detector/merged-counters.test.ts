import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FrameFeed, LiveCounters, PrefixGroups } from '#sensor/attack-counters/index.ts';
import { startSecond } from '#sensor/testing/attack-traffic.ts';
import { ethernet, udp } from '#sensor/testing/frames.ts';
import { createThresholdBook, defaultThresholds } from './index.ts';
import { MergedCounters } from './merged-counters.ts';

test('NET-1.1: hosts keep their prefix while others come and go, and their counters stay exact', () => {
  const scope = { prefixes: ['10.0.0.0/8'], addresses: [] };
  const limits = createThresholdBook(defaultThresholds).sets.map(({ hostLimits }) => hostLimits);
  const counters = new LiveCounters({ number: 1, scope, groups: [], limits });
  const feed = new FrameFeed(counters);
  const merged = new MergedCounters(new PrefixGroups([]));
  const frame = ethernet(
    udp({ from: '198.51.100.9', fromPort: 7, to: '10.0.0.1', toPort: 80 }, new Uint8Array(9)),
  );
  let renumbered = 0;
  for (let second = 0; second < 40; second += 1) {
    const before = new Map(hostsOf(merged).map(({ text, prefix }) => [text, prefix]));
    // 64 hosts of prefixes that stay, and 128 of others in every second: quiet ones make room again and again.
    counters.turn(startSecond + second, 192);
    for (const part of counters.takeSeconds()) {
      merged.open(second + 16);
      assert.equal(merged.add(second + 16, part), 0);
    }
    for (let i = 0; i < 192; i += 1) {
      const isStaying = i % 3 === 0;
      frame[31] = isStaying ? 200 : second;
      frame[32] = i;
      feed.observe(frame, 0, frame.length, frame.length, 1, 1, startSecond + second);
    }
    for (const { text, prefix, found } of hostsOf(merged)) {
      assert.equal(prefix, found, `the prefix of ${text}`);
      if ((before.get(text) ?? prefix) !== prefix) renumbered += 1;
    }
  }
  assert.ok(renumbered > 0, 'no prefix got another number');
});

/** Every host with its prefix as the counters know it, and as it is found by the address. */
function hostsOf(merged: MergedCounters) {
  const { hosts, prefixes } = merged;
  return Array.from({ length: hosts.count }, (_, slot) => ({
    text: hosts.text(slot),
    prefix: merged.prefixOf(slot),
    found: prefixes.find(4, 0, 0, 0, hosts.keyWord(slot, 3) & ~255),
  }));
}
