import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import {
  createCrowd,
  createFlood,
  createLookups,
  createTransfer,
  dividedThresholds,
  type FloodShape,
  floodClasses,
  foundClass,
  observeFrame,
  observeStreams,
  packetsAtThreshold,
  type Stream,
  startSecond,
  victim,
} from '#sensor/testing/attack-traffic.ts';
import { ethernet, ip, Tcp, tcp, udp } from '#sensor/testing/frames.ts';
import { Detector } from './index.ts';

const thresholds = dividedThresholds(200);
const scope = { prefixes: ['192.0.2.0/24', '2001:db8:7::/48'], addresses: [] };

function newDetector(options: Partial<ConstructorParameters<typeof Detector>[0]> = {}): Detector {
  return new Detector({ scope, thresholds, key: [1, 2], ...options });
}

function floodStream(shape: FloodShape, from: number, to: number, seed = 1): Stream {
  const perSecond = packetsAtThreshold(shape, thresholds) * shape.ratio;
  return { step: createFlood(shape, seed), perSecond, from, to };
}

/** A little ordinary traffic, so that time passes. */
function background(to: number): Stream {
  return { step: createLookups(9), perSecond: 5, from: 0, to };
}

function detect(streams: readonly Stream[]) {
  const detector = newDetector();
  observeStreams(detector, streams);
  return detector.finish();
}

function attacksOf({ incidents }: ReturnType<Detector['finish']>) {
  return incidents.filter(({ severity }) => severity === 'attack');
}

/** Times the threshold, and the part of a second at which the flood begins. `proofs/sensor/detector` draws both. */
const decided = [
  { ratio: 1.1, part: 0.05, versions: [4, 6] },
  { ratio: 2, part: 0.6, versions: [4, 6] },
  { ratio: 10, part: 0.95, versions: [4] },
] as const;

for (const version of [4, 6] as const) {
  for (const direction of ['inbound', 'outbound'] as const) {
    for (const name of floodClasses) {
      // Outbound connections are judged by their packets; a handshake has too few.
      if (direction === 'outbound' && name === 'connection_flood') continue;
      test(`NET-1.1: ${name} ${direction} over IPv${version} is decided in 3 s at 2 times the threshold, in 6 s at 1.1 times`, () => {
        for (const [i, { ratio, part, versions }] of decided.entries()) {
          if (!versions.some((one) => one === version)) continue;
          const shape: FloodShape = { class: name, version, direction, ratio };
          const from = 2 + part;
          const result = detect([background(12), floodStream(shape, from, ratio > 4 ? 6 : 9.5, i + 1)]);
          const attacks = attacksOf(result);
          assert.deepEqual(
            attacks.map((one) => [one.class, one.direction, one.target]),
            [[foundClass(shape), direction, { kind: 'host', value: victim(version) }]],
            `at ${ratio} times`,
          );
          const took = attacks[0]!.detectedAt / 1000 - startSecond - from;
          assert.ok(took <= (ratio >= 2 ? 3 : 6), `decided after ${took} s at ${ratio} times`);
          assert.ok(attacks[0]!.startedAt <= (startSecond + from) * 1000);
          const pps = packetsAtThreshold(shape, thresholds) * ratio;
          if (name !== 'connection_flood')
            assert.ok(
              Math.abs(attacks[0]!.peak.pps - pps) <= 5 + pps / 10,
              `${attacks[0]!.peak.pps} of ${pps}`,
            );
        }
      });
    }
  }
}

test('NET-1.1: vectors name the share and the ports of an attack', () => {
  const shapes: FloodShape[] = [
    { class: 'amplification', version: 4, direction: 'inbound', ratio: 4 },
    { class: 'syn_flood', version: 4, direction: 'inbound', ratio: 2 },
  ];
  const [attack] = attacksOf(detect(shapes.map((shape) => floodStream(shape, 1, 6))));
  assert.equal(attack!.class, 'amplification');
  assert.deepEqual(
    attack!.vectors.map((vector) => [vector.class, vector.ports]),
    [
      ['amplification', [123]],
      ['syn_flood', [443]],
    ],
  );
  const share = attack!.vectors.reduce((sum, vector) => sum + vector.packets_share, 0);
  assert.ok(Math.abs(share - 1) < 0.01);
  assert.ok(attack!.remotes.length > 0 && attack!.remotes.length <= 20);
});

test('NET-1.1: the largest source of an attack is first, with its share', () => {
  const detector = newDetector();
  for (let i = 0; i < 4000; i += 1) {
    const from = i % 2 === 0 ? '198.51.100.9' : `11.${(i >> 3) & 255}.${i % 251}.1`;
    const frame = ethernet(udp({ from, fromPort: 1000, to: victim(4), toPort: 9 }, new Uint8Array(8)));
    observeFrame(detector, frame, startSecond + i / 1000);
  }
  const [attack] = attacksOf(detector.finish());
  assert.equal(attack!.remotes[0]!.prefix, '198.51.100.0/24');
  assert.ok(Math.abs(attack!.remotes[0]!.share - 0.5) < 0.1);
});

test('NET-1.1: traffic below its threshold, and a burst within one second, is no incident', () => {
  for (const name of floodClasses) {
    const shape: FloodShape = { class: name, version: 4, direction: 'inbound', ratio: 0.9 };
    const burst = { ...shape, ratio: 20 };
    assert.deepEqual(detect([background(20), floodStream(shape, 1.5, 15)]).incidents, [], name);
    assert.deepEqual(detect([background(20), floodStream(burst, 5.1, 5.9)]).incidents, [], `${name} burst`);
  }
});

test('NET-3.2: an incident recovers after sixty healthy seconds, with its own times and totals', () => {
  const shape: FloodShape = { class: 'udp_flood', version: 4, direction: 'inbound', ratio: 3 };
  const result = detect([background(80), floodStream(shape, 4, 14)]);
  const [attack] = attacksOf(result);
  assert.equal(attack!.state, 'recovered');
  assert.equal(attack!.startedAt, (startSecond + 4) * 1000);
  assert.equal(attack!.lastObservedAt, (startSecond + 14) * 1000);
  assert.equal(attack!.recoveredAt, (startSecond + 74) * 1000);
  assert.equal(attack!.totals.packets, thresholds.inbound.udp_pps * 3 * 10);
  assert.equal(attack!.peak.pps, thresholds.inbound.udp_pps * 3);
  assert.equal(attack!.coverage, 'complete');
  assert.equal(result.complete, true);
  assert.equal(result.ticks, 80);
});

test('NET-3.2: an incident stays active while less than sixty seconds are healthy', () => {
  const shape: FloodShape = { class: 'udp_flood', version: 4, direction: 'inbound', ratio: 3 };
  const [attack] = attacksOf(detect([background(70), floodStream(shape, 4, 14)]));
  assert.equal(attack!.state, 'active');
  assert.equal(attack!.recoveredAt, null);
});

test('NET-3.2: seconds without a packet are healthy while pauses are short', () => {
  const shape: FloodShape = { class: 'udp_flood', version: 4, direction: 'inbound', ratio: 3 };
  const rare: Stream = { step: createLookups(1), perSecond: 1 / 9, from: 5, to: 100 };
  const result = detect([floodStream(shape, 0, 5), rare]);
  assert.equal(attacksOf(result)[0]!.recoveredAt, (startSecond + 65) * 1000);
  assert.equal(result.complete, true);
});

test('NET-3.2: the same attack within five minutes of its recovery continues the incident', () => {
  const shape: FloodShape = { class: 'icmp_flood', version: 4, direction: 'inbound', ratio: 3 };
  const again = floodStream(shape, 120, 125);
  const attacks = attacksOf(detect([background(200), floodStream(shape, 4, 10), again]));
  assert.equal(attacks.length, 1);
  assert.equal(attacks[0]!.recoveredAt, (startSecond + 185) * 1000);
  const later = floodStream(shape, 400, 405);
  assert.equal(attacksOf(detect([background(480), floodStream(shape, 4, 10), later])).length, 2);
});

test('NET-3.2: a gap of minutes ends no incident, and is said', () => {
  const detector = newDetector();
  const shape: FloodShape = { class: 'udp_flood', version: 4, direction: 'inbound', ratio: 3 };
  observeStreams(detector, [floodStream(shape, 0, 5)]);
  observeStreams(detector, [{ step: createLookups(1), perSecond: 5, from: 600, to: 630 }]);
  const result = detector.finish();
  assert.equal(attacksOf(result)[0]!.state, 'active');
  assert.equal(attacksOf(result)[0]!.coverage, 'partial');
  assert.equal(result.complete, false);
  assert.equal(result.gaps, 1);
});

test('NET-1.1: a clock that jumps back makes no attack of ordinary traffic', () => {
  const detector = newDetector();
  const shape: FloodShape = { class: 'udp_flood', version: 4, direction: 'inbound', ratio: 0.6 };
  for (let round = 0; round < 20; round += 1)
    observeStreams(detector, [floodStream(shape, 100 - round * 3, 103.5 - round * 3)]);
  const result = detector.finish();
  assert.deepEqual(result.incidents, []);
  assert.equal(result.complete, false);
});

test('NET-1.1: broken frames at any times are judged without an error', () => {
  const random = seededRandom(4);
  const detector = newDetector({ scope: null });
  const seeds = floodClasses.map((name, i) =>
    createFlood({ class: name, version: i % 2 === 0 ? 4 : 6, direction: 'inbound', ratio: 1 }, i)(),
  );
  for (let i = 0; i < 5_000; i += 1) {
    const frame = seeds[i % seeds.length]![0]!.slice();
    frame[Math.floor(random() * frame.length)] = Math.floor(random() * 256);
    const cut = frame.subarray(0, Math.floor(random() * (frame.length + 1)));
    const step = random() < 0.01 ? (random() - 0.5) * 1e9 : random() * 20;
    observeFrame(detector, cut, startSecond + step, i % 7);
  }
  const result = detector.finish();
  assert.deepEqual(result.incidents, []);
  assert.ok(result.gaps > 0 && result.ticks > 0);
});

for (const transport of ['tcp', 'udp'] as const) {
  test(`NET-1.1: a ${transport} download at line rate is information, not an attack`, () => {
    for (const [from, to] of [
      ['198.51.100.1', victim(4)],
      [victim(4), '198.51.100.1'],
      ['2a00:1::1', victim(6)],
    ] as const) {
      const perSecond = (thresholds.inbound.bps * 1.2) / 8 / (2 * 1460);
      const result = detect([{ step: createTransfer(transport, from, to), perSecond, from: 0, to: 12 }]);
      assert.deepEqual(
        result.incidents.map((one) => [one.class, one.severity]),
        [['high_volume', 'info']],
      );
    }
  });
}

test('NET-1.1: a flash crowd is no attack', () => {
  for (const version of [4, 6] as const) {
    const perSecond = thresholds.inbound.connections_per_second * 3;
    const result = detect([{ step: createCrowd(version, 3), perSecond, from: 0.3, to: 12 }]);
    assert.deepEqual(attacksOf(result), []);
  }
});

test('NET-1.1: port scans from outside are no attack', () => {
  const sourceOf = (i: number) => (i % 2 === 0 ? '198.51.100.66' : '198.51.100.67');
  const detector = newDetector();
  const perSecond = thresholds.inbound.syn_pps * 2.5;
  for (let i = 0; i < perSecond * 12; i += 1) {
    const ends = { from: sourceOf(i), fromPort: 50_000, to: victim(4), toPort: 1 + ((i * 7919) % 65_535) };
    const at = startSecond + i / perSecond;
    observeFrame(detector, ethernet(tcp(ends, Tcp.syn, 1)), at);
    const back = { from: victim(4), fromPort: ends.toPort, to: ends.from, toPort: 50_000 };
    observeFrame(detector, ethernet(tcp(back, Tcp.reset | Tcp.ack, 1)), at);
  }
  const result = detector.finish();
  assert.deepEqual(
    result.incidents.map((one) => [one.class, one.severity, one.direction]),
    [['other', 'info', 'inbound']],
  );
});

test('NET-1.1: a server that answers a flood is not blamed for its answers', () => {
  const shape: FloodShape = { class: 'syn_flood', version: 4, direction: 'inbound', ratio: 20 };
  const random = seededRandom(5);
  const flood = createFlood(shape, 1);
  const step = () => {
    const [frame] = flood();
    const from = `11.${Math.floor(random() * 256)}.7.9`;
    const flags = random() < 0.5 ? Tcp.syn | Tcp.ack : Tcp.reset | Tcp.ack;
    return [frame!, ethernet(tcp({ from: victim(4), fromPort: 443, to: from, toPort: 1000 }, flags, 1))];
  };
  const perSecond = thresholds.inbound.syn_pps * 20;
  const result = detect([{ step, perSecond, from: 0, to: 6 }]);
  assert.deepEqual(
    attacksOf(result).map((one) => [one.class, one.direction]),
    [['syn_flood', 'inbound']],
  );
});

test('NET-1.1: a server that refuses the packets of a flood is not blamed for its refusals', () => {
  for (const name of ['protocol_flood', 'fragment_flood', 'amplification', 'udp_flood'] as const) {
    const shape: FloodShape = { class: name, version: 4, direction: 'inbound', ratio: 1 };
    const flood = createFlood(shape, 1);
    const unreachable = new Uint8Array([3, 2, 0, 0, 0, 0, 0, 0]);
    const refusal = ethernet(ip(unreachable, { from: victim(4), to: '11.6.7.9', protocol: 1 }));
    // Its refusals alone are over the threshold of all packets.
    const perSecond = thresholds.outbound.pps * 2;
    const result = detect([{ step: () => [...flood(), refusal], perSecond, from: 0, to: 6 }]);
    assert.deepEqual(
      attacksOf(result).map((one) => [one.class, one.direction]),
      [[name, 'inbound']],
    );
  }
});

test('NET-1.1: carpet bombing over a prefix is one incident of the prefix', () => {
  for (const version of [4, 6] as const) {
    let next = 0;
    const random = seededRandom(1);
    const step = () => {
      next += 1;
      const host = 1 + (next % 200);
      const to = version === 4 ? `192.0.2.${host}` : `2001:db8:7:${host.toString(16)}::7`;
      const from =
        version === 4 ? `11.${Math.floor(random() * 256)}.1.9` : `2a00:1:${(next % 900).toString(16)}::1`;
      return [ethernet(udp({ from, fromPort: 7777, to, toPort: 80 }, new Uint8Array(12)))];
    };
    const perSecond = thresholds.inbound.udp_pps * 2 * 2;
    const result = detect([{ step, perSecond, from: 0.4, to: 6 }]);
    const prefix = version === 4 ? '192.0.2.0/24' : '2001:db8:7::/48';
    assert.deepEqual(
      attacksOf(result).map((one) => [one.class, one.target]),
      [['udp_flood', { kind: 'prefix', value: prefix }]],
    );
    const [attack] = attacksOf(result);
    assert.ok(attack!.detectedAt <= (startSecond + 3.4) * 1000);
    assert.ok(attack!.remotes.length > 0);
  }
});

test('NET-1.1: a flood over the addresses of a /64 is one incident of it, by the thresholds of one address', () => {
  for (const addresses of [200, 60_000]) {
    let next = 0;
    const step = () => {
      next += 1;
      const to = `2001:db8:7:5::${(1 + ((next * 7919) % addresses)).toString(16)}`;
      const from = `2a00:1:${(next % 900).toString(16)}::1`;
      return [ethernet(udp({ from, fromPort: 7777, to, toPort: 80 }, new Uint8Array(12)))];
    };
    const perSecond = thresholds.inbound.udp_pps * 1.9;
    const attacks = attacksOf(detect([{ step, perSecond, from: 0.4, to: 20 }]));
    assert.deepEqual(
      attacks.map((one) => [one.class, one.target]),
      [['udp_flood', { kind: 'prefix', value: '2001:db8:7:5::/64' }]],
    );
    assert.ok(attacks[0]!.detectedAt <= (startSecond + 3.4) * 1000);
    assert.ok(attacks[0]!.peak.pps > perSecond * 0.9, `${attacks[0]!.peak.pps} of ${perSecond}`);
  }
});

test('NET-1.1: frames of an unknown number of packets count by their bytes', () => {
  const detector = newDetector();
  const perSecond = 2 * (thresholds.inbound.udp_bps / 8 / 30_028);
  const random = seededRandom(1);
  for (let i = 0; i < perSecond * 5; i += 1) {
    const from = `11.${Math.floor(random() * 256)}.${Math.floor(random() * 256)}.9`;
    const ends = { from, fromPort: 1024 + i, to: victim(4), toPort: 80 };
    observeFrame(detector, ethernet(udp(ends, new Uint8Array(30_000))), startSecond + i / perSecond, 0);
  }
  const result = detector.finish();
  const [attack] = attacksOf(result);
  assert.equal(attack!.class, 'udp_flood');
  assert.equal(attack!.coverage, 'partial');
  assert.ok(result.mergedFrames > 0);
  assert.equal(result.complete, false);
});

test('NET-1.1: merged frames count as the packets that they were made of', () => {
  const shape: FloodShape = { class: 'udp_flood', version: 4, direction: 'inbound', ratio: 1 };
  const flood = createFlood(shape, 1);
  const detector = newDetector();
  const perSecond = (packetsAtThreshold(shape, thresholds) * 2) / 10;
  for (let i = 0; i < perSecond * 4; i += 1)
    observeFrame(detector, flood()[0]!, startSecond + i / perSecond, 10);
  assert.equal(attacksOf(detector.finish())[0]!.class, 'udp_flood');
});
