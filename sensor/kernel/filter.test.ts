/** The filter's programs over frames, without an interface. Needs root. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { attackClasses, filterOf } from '#contracts/attack-classes.ts';
import { type AttackDirection, attackDirections } from '#contracts/incidents.ts';
import type { DroppedCounters } from '#contracts/sensor-api/telemetry.ts';
import { openCaptureFile } from '#sensor/capture-files/index.ts';
import { createFlood, type FloodClass, floodClasses, victim } from '#sensor/testing/attack-traffic.ts';
import { capturePath, expectedFiles, hasCorpus } from '#sensor/testing/corpus.ts';
import { FilterRuns, rulesAgainst } from '#sensor/testing/filter-runs.ts';
import { ethernet, ip, join, reverse, Tcp, tcp, u16, udp } from '#sensor/testing/frames.ts';
import { KernelFilter } from './filter.ts';
import { type FilterAmount, filterAddress } from './filter-layout.ts';
import { libbpf, must } from './libbpf.ts';

const noneDropped: DroppedCounters = { rxBytes: 0, txBytes: 0, rxPackets: 0, txPackets: 0 };
const skip = process.getuid?.() === 0 ? false : 'needs root';
const runs = skip === false ? new FilterRuns() : null!;
after(() => runs?.close());

const versions = [4, 6] as const;
const vectorOf = (name: FloodClass) => ({
  class: name,
  ports: name === 'amplification' ? [123] : [],
  protocols: name === 'protocol_flood' ? [132] : [],
});
const flood = (name: FloodClass, version: 4 | 6, packets: number, direction: AttackDirection = 'inbound') => {
  const step = createFlood({ class: name, version, direction, ratio: 1 }, 7);
  // Of a handshake the opening is what the filter is for.
  return Array.from({ length: packets }, () => step()[0]!);
};
const pass = {
  inbound: (frame: Uint8Array) => runs.receive(frame),
  outbound: (frame: Uint8Array) => runs.send(frame),
};
const oppositeOf = (direction: AttackDirection) => attackDirections.find((one) => one !== direction)!;

test('the packets of every class that can be told from others are dropped and counted in their direction, to the byte', {
  skip,
}, () => {
  const told = attackClasses.filter((name) => name !== 'reflector' && filterOf(name, [132]));
  assert.deepEqual([...floodClasses].sort(), [...told].sort());
  for (const version of versions)
    for (const name of floodClasses)
      for (const direction of attackDirections) {
        const frames = flood(name, version, 40, direction);
        runs.loaded.filter.setRules(rulesAgainst(victim(version), vectorOf(name), { direction }));
        const title = `${direction} ${name} of IPv${version}`;
        const [own, other] = [frames.map(pass[direction]), frames.map(pass[oppositeOf(direction)])];
        assert.deepEqual([own.includes(true), other.includes(false)], [false, false], title);
        const { counts } = runs.loaded.filter.takeCounts()[0]!;
        const bytes = frames.reduce((sum, { length }) => sum + length - 14, 0);
        const all = { packets: 40, bytes };
        assert.deepEqual(counts, { matched: all, dropped: all, passed: { packets: 0, bytes: 0 } }, title);
      }
});

test('of a frame that offload merged on the way out every packet is counted, and its length is that of a packet', {
  skip,
}, () => {
  const ends = { from: victim(4), fromPort: 40_000, to: '203.0.113.9', toPort: 9000 };
  const frame = ethernet(udp(ends, new Uint8Array(1000)));
  const drops = (length_max: number, segments: number) => {
    const vector = { class: 'udp_flood', ports: [] };
    const rules = rulesAgainst(victim(4), vector, { direction: 'outbound', match: { length_max } });
    runs.loaded.filter.setRules(rules);
    const isDropped = !runs.send(frame, 0n, { segments, bytes: 100 });
    return [isDropped, runs.loaded.filter.takeCounts()[0]!.counts.dropped];
  };
  // A guest's offload leaves the number of segments out.
  for (const segments of [10, 0]) {
    assert.deepEqual(drops(128, segments), [true, { packets: 10, bytes: 1028 }]);
    assert.deepEqual(drops(127, segments), [false, { packets: 0, bytes: 0 }]);
  }
});

test('what is dropped is counted by address, direction and minute, also by a sensor that comes later; without such counters nothing is dropped', {
  skip,
}, () => {
  const now = Math.floor(Date.now() / 60_000) * 60;
  const { filter, maps } = runs.loaded;
  // Those of other tests.
  for (const address of filter.readDropped(now).keys())
    must(libbpf().remove(maps.dropped, filterAddress(address)), 'forget an address');
  const targets = versions.map(victim);
  const rules = targets.flatMap((target) =>
    attackDirections.flatMap((direction) => rulesAgainst(target, vectorOf('udp_flood'), { direction })),
  );
  filter.setRules(rules);
  const dropped = new Map<string, DroppedCounters>();
  for (const [i, version] of versions.entries()) {
    const [received, sent] = attackDirections.map((direction, j) => {
      const frames = flood('udp_flood', version, 5 + 2 * i + j, direction);
      for (const frame of frames) assert.equal(pass[direction](frame), false);
      return { packets: frames.length, bytes: frames.reduce((sum, { length }) => sum + length - 14, 0) };
    }) as [FilterAmount, FilterAmount];
    dropped.set(targets[i]!, {
      ...{ rxBytes: received.bytes, rxPackets: received.packets },
      ...{ txBytes: sent.bytes, txPackets: sent.packets },
    });
  }
  // The minute may have turned meanwhile.
  const readAll = (one: KernelFilter) =>
    new Map(
      targets.map((target) => {
        const [a, b] = [now, now + 60].map((minute) => one.readDropped(minute).get(target) ?? noneDropped);
        const sum = (name: keyof DroppedCounters) => a![name] + b![name];
        const [rxBytes, txBytes] = [sum('rxBytes'), sum('txBytes')];
        return [target, { rxBytes, txBytes, rxPackets: sum('rxPackets'), txPackets: sum('txPackets') }];
      }),
    );
  assert.deepEqual(readAll(filter), dropped);
  filter.setRules([]);
  const later = new KernelFilter(maps);
  later.setRules(rules);
  assert.deepEqual(readAll(later), dropped, 'a new rule clears nothing');
  assert.equal(later.readDropped(now - 60).size, 0);
  must(libbpf().remove(maps.dropped, filterAddress(targets[0]!)), 'forget an address');
  assert.equal(runs.receive(flood('udp_flood', 4, 1)[0]!), true);
  filter.setRules([]);
});

test('a rule that counts drops nothing, drops from its time on, and nothing after its end or ten seconds after the last sign of life', {
  skip,
}, () => {
  const nowMs = Date.now();
  const target = victim(4);
  const [frame] = flood('udp_flood', 4, 1);
  const passes = (part: Parameters<typeof rulesAgainst>[2]) => {
    const rules = rulesAgainst(target, vectorOf('udp_flood'), { beganAtMs: nowMs, ...part });
    runs.loaded.filter.setRules(rules);
    return runs.receive(frame!);
  };
  assert.equal(passes({ dropsAtMs: null }), true);
  assert.equal(passes({ dropsAtMs: nowMs + 60_000 }), true);
  assert.equal(passes({ dropsAtMs: nowMs - 1000 }), false);
  const { counts } = runs.loaded.filter.takeCounts()[0]!;
  assert.equal(counts.matched.packets, 3, 'its counters stay when it begins to drop');
  assert.equal(counts.dropped.packets, 1);
  assert.equal(passes({ endsAtMs: nowMs - 1000 }), true);
  passes({});
  assert.equal(runs.receive(frame!, 10_100_000_000n), true, 'fail open');
  assert.equal(runs.receive(frame!), false);
  const [sent] = flood('udp_flood', 4, 1, 'outbound');
  runs.loaded.filter.setRules(rulesAgainst(target, vectorOf('udp_flood'), { direction: 'outbound' }));
  assert.deepEqual([runs.send(sent!, 10_100_000_000n), runs.send(sent!)], [true, false]);
  runs.loaded.filter.setRules([]);
  assert.equal(runs.receive(frame!), true);
});

test('a rule tells packets by address, source port, length and flags, and drops no neighbour discovery', {
  skip,
}, () => {
  const ends = { from: '203.0.113.9', fromPort: 123, to: victim(4), toPort: 9000 };
  const packet = (part: object, length = 400) => ethernet(udp({ ...ends, ...part }, new Uint8Array(length)));
  const vector = { class: 'amplification', ports: [123, 53] };
  const match = { length_min: 200, length_max: 1000 };
  runs.loaded.filter.setRules(rulesAgainst(victim(4), vector, { match }));
  const tagged = ethernet(udp(ends, new Uint8Array(400)), { tags: [7, 9] });
  for (const frame of [packet({}), packet({ fromPort: 53 }), tagged])
    assert.equal(runs.receive(frame), false);
  for (const frame of [
    ...[packet({ fromPort: 124 }), packet({ to: '192.0.2.8' }), packet({}, 100), packet({}, 1001)],
    ethernet(tcp(ends, Tcp.syn, 1)),
  ])
    assert.equal(runs.receive(frame), true);
  const discovery = (hop: number) => {
    const payload = join([135, 0, 0, 0, 0, 0, 0, 0], new Uint8Array(16));
    const frame = ethernet(ip(payload, { from: '2001:db8::1', to: victim(6), protocol: 58 }));
    frame[14 + 7] = hop;
    return frame;
  };
  runs.loaded.filter.setRules(rulesAgainst(victim(6), { class: 'icmp_flood', ports: [] }));
  assert.deepEqual(
    [255, 64].map((hop) => runs.receive(discovery(hop))),
    [true, false],
  );
  const [vector6, direction] = [{ class: 'icmp_flood', ports: [] }, 'outbound'] as const;
  runs.loaded.filter.setRules(rulesAgainst('2001:db8::1', vector6, { direction }));
  assert.deepEqual(
    [255, 64].map((hop) => runs.send(discovery(hop))),
    [true, false],
  );
});

test('what a pair carries that was established before the attack passes; one that converses since is no reason', {
  skip,
}, () => {
  const client = { from: '203.0.113.77', fromPort: 40_000, to: victim(4), toPort: 443 };
  const data = ethernet(tcp(client, Tcp.ack, 2, new Uint8Array(100)));
  const answer = ethernet(tcp(reverse(client), Tcp.ack, 2, new Uint8Array(100)));
  const drops = (beganAtMs: number) => {
    runs.loaded.filter.setRules(rulesAgainst(victim(4), { class: 'ack_flood', ports: [] }, { beganAtMs }));
    return !runs.receive(data);
  };
  const [before, later] = [Date.now() - 1000, Date.now() + 3_600_000];
  runs.loaded.filter.setRules([]);
  const startedMs = performance.now();
  for (const round of ['begins', 'goes on']) {
    assert.equal(drops(later), true, round);
    runs.loaded.filter.setRules([]);
    runs.send(answer);
    runs.receive(data);
  }
  runs.send(answer);
  const isDropped = drops(later);
  // On a machine that stood still meanwhile the pair may be old enough.
  if (performance.now() - startedMs < 2000) assert.equal(isDropped, true, 'not within two seconds');
  runs.loaded.filter.setRules([]);
  runs.age();
  runs.send(answer);
  assert.equal(drops(later), false);
  assert.equal(drops(before), true);
  const sends = (beganAtMs: number) => {
    const part = { beganAtMs, direction: 'outbound' } as const;
    runs.loaded.filter.setRules(rulesAgainst(victim(4), { class: 'ack_flood', ports: [] }, part));
    return runs.send(answer);
  };
  assert.deepEqual([sends(later), sends(before)], [true, false]);
});

test('refusals and answers to made-up senders establish no pair', { skip }, () => {
  const ends = { from: '203.0.113.78', fromPort: 40_000, to: victim(4), toPort: 443 };
  const unreachable = ip(join([3, 3, 0, 0], u16(0), u16(0), new Uint8Array(28)), {
    ...{ from: victim(4), to: ends.from, protocol: 1 },
  });
  const flag = (flags: number) => ethernet(tcp(ends, flags, 1));
  const back = (flags: number) => ethernet(tcp(reverse(ends), flags, 1));
  runs.loaded.filter.setRules([]);
  for (const [sent, got] of [
    [back(Tcp.syn | Tcp.ack), flag(Tcp.syn)],
    [back(Tcp.reset | Tcp.ack), flag(Tcp.ack)],
    [ethernet(unreachable), ethernet(udp(ends, new Uint8Array(20)))],
  ] as const)
    for (let i = 0; i < 4; i += 1) {
      runs.receive(got);
      runs.send(sent);
      runs.age();
    }
  const rules = rulesAgainst(
    victim(4),
    { class: 'ack_flood', ports: [] },
    { beganAtMs: Date.now() + 3_600_000 },
  );
  runs.loaded.filter.setRules(rules);
  assert.equal(runs.receive(flag(Tcp.ack)), false);
});

test('every frame of the corpus passes beside rules against other addresses', {
  skip: skip || (hasCorpus() ? false : 'no corpus'),
}, () => {
  runs.loaded.filter.setRules(
    versions.flatMap((version) =>
      floodClasses.flatMap((name) => rulesAgainst(victim(version).replace(/7$/, '251'), vectorOf(name))),
    ),
  );
  for (const { file: name } of expectedFiles()) {
    const file = openCaptureFile(capturePath(name));
    while (file.next()) {
      const bytes = file.bytes.slice(file.offset, file.offset + file.capturedLength);
      if (file.linkType === 1 && bytes.length >= 14 && bytes.length <= 3500)
        assert.ok(runs.receive(bytes), name);
    }
    file.close();
  }
});
