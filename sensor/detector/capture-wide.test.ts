// Slow: goes through hours of traffic of a whole capture.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import {
  createLookups,
  dividedThresholds,
  observeStreams,
  type Stream,
  startSecond,
} from '#sensor/testing/attack-traffic.ts';
import { ethernet, ip, Tcp, tcp, udp } from '#sensor/testing/frames.ts';
import { Detector, type Incident, type WatchedCapture } from './index.ts';
import type { Thresholds } from './thresholds.ts';

const thresholds = dividedThresholds(1000);
const { inbound } = thresholds;
const scope = { prefixes: ['192.0.2.0/24', '198.18.0.0/16', '2001:db8:7::/48'], addresses: [] };
const uplink = (linkBps: number | null = null): WatchedCapture => ({ name: 'eth0', linkBps: () => linkBps });

interface Setting {
  capture?: WatchedCapture;
  thresholds?: Thresholds;
}

function detect(streams: readonly Stream[], { capture = uplink(), ...more }: Setting = {}) {
  const detector = new Detector({ scope, thresholds, key: [1, 2], capture, ...more });
  observeStreams(detector, streams);
  return detector.finish();
}

/** UDP to so many hosts of each of so many prefixes in turn, from random sources. */
function carpet(
  perSecond: number,
  from: number,
  to: number,
  { prefixes = 8, hosts = 40, bytes = 12 } = {},
): Stream {
  const random = seededRandom(3);
  let next = 0;
  const step = () => {
    next += 1;
    const target = `198.18.${next % prefixes}.${1 + (Math.floor(next / prefixes) % hosts)}`;
    const source = `11.${Math.floor(random() * 256)}.${Math.floor(random() * 256)}.9`;
    return [ethernet(udp({ from: source, fromPort: 7777, to: target, toPort: 80 }, new Uint8Array(bytes)))];
  };
  return { step, perSecond, from, to };
}

/** Two-way UDP of one host with many others: ordinary traffic to many hosts. */
function ordinary(perSecond: number, from: number, to: number, bytes = 1000): Stream {
  let next = 0;
  const step = () => {
    next += 1;
    const host = `198.18.${next % 8}.${200 + (next % 40)}`;
    const ends = { from: '203.0.113.5', fromPort: 443, to: host, toPort: 5000 };
    const back = { from: host, fromPort: 5000, to: '203.0.113.5', toPort: 443 };
    return [
      ethernet(tcp(back, Tcp.ack, 1, new Uint8Array(10))),
      ethernet(tcp(ends, Tcp.ack, 1, new Uint8Array(bytes))),
    ];
  };
  return { step, perSecond, from, to };
}

const background = (to: number): Stream => ({ step: createLookups(9), perSecond: 5, from: 0, to });
const named = ({ target, class: name, severity }: Incident) => [target.kind, target.value, name, severity];
/** Seven minutes of which the first may be cut. */
const learnt = 430;

test('NET-1.1: four times what a capture usually has, spread so that no prefix has too much, is one attack on it', () => {
  // Each of eight prefixes has 1.2 times the threshold of one address; two are needed.
  const perSecond = inbound.udp_pps * 1.2 * 8;
  const result = detect([background(learnt + 90), carpet(perSecond, learnt, learnt + 10)]);
  assert.deepEqual(result.incidents.map(named), [['capture', 'eth0', 'udp_flood', 'attack']]);
  const [attack] = result.incidents;
  assert.equal(attack!.direction, 'inbound');
  assert.ok(attack!.detectedAt <= (startSecond + learnt + 6) * 1000, String(attack!.detectedAt));
  assert.equal(attack!.startedAt, (startSecond + learnt) * 1000);
  assert.deepEqual(attack!.threshold, { metric: 'pps', value: inbound.pps * 2 });
  assert.ok(Math.abs(attack!.peak.pps - perSecond) < perSecond / 20, String(attack!.peak.pps));
  assert.deepEqual(attack!.vectors[0]!.ports, [80]);
  assert.ok(attack!.remotes.length > 0);
  assert.equal(attack!.recoveredAt, (startSecond + learnt + 70) * 1000);
});

test('NET-1.1: a capture that is too young, or that has less than four times the usual, is not attacked', () => {
  const perSecond = inbound.udp_pps * 1.2 * 8;
  assert.deepEqual(detect([background(260), carpet(perSecond, 240, 250)]).incidents, []);
  // Usually it has a third of it.
  const usual = carpet(perSecond / 3, 0, learnt);
  assert.deepEqual(
    detect([background(learnt + 20), usual, carpet(perSecond, learnt, learnt + 10)]).incidents,
    [],
  );
});

test('NET-1.1: 80 % of the link is an attack on the capture; of an unknown link nothing is judged', () => {
  // Packets of 128 bytes are 166 on the link.
  const perSecond = 600;
  const used = perSecond * 166 * 8;
  const streams = [background(100), carpet(perSecond, 3.2, 15, { bytes: 100, hosts: 200 })];
  const loud = { thresholds: dividedThresholds(60) };
  for (const [share, expected] of [
    [0.84, [['capture', 'eth0', 'udp_flood', 'attack']]],
    [0.76, []],
  ] as const) {
    const result = detect(streams, { ...loud, capture: uplink(used / share) });
    assert.deepEqual(result.incidents.map(named), expected, String(share));
    if (expected.length === 0) continue;
    assert.ok(result.incidents[0]!.detectedAt <= (startSecond + 9.3) * 1000);
    assert.deepEqual(result.incidents[0]!.threshold, { metric: 'bps', value: (used / share) * 0.8 });
  }
  assert.deepEqual(detect(streams, loud).incidents, []);
});

test('NET-1.1: ordinary traffic that fills the link is information', () => {
  const used = 400 * (1040 + 38) * 8;
  const result = detect([ordinary(400, 0, 12)], {
    capture: uplink(used),
    thresholds: dividedThresholds(2),
  });
  assert.deepEqual(result.incidents.map(named), [['capture', 'eth0', 'high_volume', 'info']]);
});

test('NET-1.1: an attack on one address, or on one prefix, is none on the capture, also where it fills the link', () => {
  for (const [stream, kind] of [
    [carpet(inbound.udp_pps * 20, learnt, learnt + 10, { prefixes: 1, hosts: 1 }), 'host'],
    [carpet(inbound.udp_pps * 20, learnt, learnt + 10, { prefixes: 1, hosts: 100 }), 'prefix'],
  ] as const) {
    const result = detect([background(learnt + 20), stream]);
    assert.deepEqual(
      result.incidents.map(({ target }) => target.kind),
      [kind],
    );
    const full = detect([background(learnt + 20), stream], {
      capture: uplink(inbound.udp_pps * 20 * 84 * 8),
    });
    assert.deepEqual(
      full.incidents.map(({ target, severity }) => [target.kind, severity]).sort(),
      [
        ['capture', 'info'],
        [kind, 'attack'],
      ].sort(),
    );
  }
});

test('NET-1.1: minutes of an attack are not usual ones', () => {
  const perSecond = inbound.udp_pps * 1.2 * 8;
  // Seven minutes of it: enough to be usual, if they counted.
  const result = detect([background(learnt + 440), carpet(perSecond, learnt, learnt + 420)]);
  assert.equal(result.incidents.length, 1);
  assert.equal(result.incidents[0]!.lastObservedAt, (startSecond + learnt + 420) * 1000);
});

const kinds = ['syn_flood', 'udp_flood', 'icmp_flood', 'fragment_flood'] as const;
const thresholdOf = {
  syn_flood: inbound.syn_pps,
  udp_flood: inbound.udp_pps,
  icmp_flood: inbound.icmp_pps,
  fragment_flood: inbound.fragment_pps,
};

test('NET-1.1: an attack on one address does not change what is usual for the capture', () => {
  const oneHost = carpet(inbound.udp_pps * 8, learnt, learnt + 400, { prefixes: 1, hosts: 1 });
  const perSecond = inbound.udp_pps * 1.2 * 8;
  const result = detect([background(learnt + 490), oneHost, carpet(perSecond, learnt + 480, learnt + 490)]);
  assert.deepEqual(
    result.incidents.map(({ target }) => target.kind),
    ['host', 'capture'],
  );
});

/** Floods on so many hosts of a prefix, each at this part of the threshold of its kind. */
function spread(
  hosts: number,
  ratio: number,
  version: 4 | 6,
  used: readonly (typeof kinds)[number][],
): Stream[] {
  const random = seededRandom(5);
  return Array.from({ length: hosts }, (_, host) => {
    const kind = used[host % used.length]!;
    const local = version === 4 ? `192.0.2.${1 + host}` : `2001:db8:7::${(1 + host).toString(16)}`;
    const step = () => {
      const far = Math.floor(random() * 60_000) + 1;
      const remote = version === 4 ? `11.${far >> 8}.${far & 255}.9` : `2a00:${far.toString(16)}::9`;
      const ends = { from: remote, fromPort: 1024 + far, to: local, toPort: 443 };
      if (kind === 'syn_flood') return [ethernet(tcp(ends, Tcp.syn, far))];
      if (kind === 'udp_flood') return [ethernet(udp(ends, new Uint8Array(20)))];
      if (kind === 'icmp_flood') {
        const echo = new Uint8Array([version === 4 ? 8 : 128, 0, 0, 0, 0, 1, 0, 1]);
        return [ethernet(ip(echo, { from: remote, to: local, protocol: version === 4 ? 1 : 58 }))];
      }
      return [
        ethernet(ip(new Uint8Array(64), { from: remote, to: local, protocol: 17, more: true, id: far })),
      ];
    };
    return { step, perSecond: thresholdOf[kind] * ratio, from: 4 + host / 100, to: 14 + host / 100 };
  });
}

const detectSpread = (streams: readonly Stream[]) => detect([background(90), ...streams]).incidents;

test('NET-1.1: sixteen hosts of a prefix, each at 0.3 of a threshold of its own, are one incident of the prefix', () => {
  // Of no kind is there twice the threshold of one host.
  const incidents = detectSpread(spread(16, 0.45, 4, kinds));
  assert.deepEqual(
    incidents.map(({ target, severity, state }) => [target.kind, target.value, severity, state]),
    [['prefix', '192.0.2.0/24', 'attack', 'recovered']],
  );
  const rate = kinds.reduce((sum, kind) => sum + thresholdOf[kind] * 0.45 * 4, 0);
  assert.ok(Math.abs(incidents[0]!.peak.pps - rate) < rate / 10, String(incidents[0]!.peak.pps));
  assert.deepEqual(detectSpread(spread(15, 0.45, 4, kinds)), []);
  assert.deepEqual(detectSpread(spread(20, 0.25, 4, kinds)), []);
});

for (const version of [4, 6] as const)
  test(`NET-1.1: hosts of an IPv${version} prefix that are attacked each by itself make an incident of the prefix from sixteen on`, () => {
    const prefix = version === 4 ? '192.0.2.0/24' : '2001:db8:7::/48';
    const of = (hosts: number) => {
      const all = detectSpread(spread(hosts, 1.5, version, ['syn_flood'])).map(named);
      return {
        hosts: all.filter(([kind]) => kind === 'host').length,
        others: all.filter(([kind]) => kind !== 'host'),
      };
    };
    assert.deepEqual(of(16), { hosts: 16, others: [['prefix', prefix, 'syn_flood', 'attack']] });
    assert.deepEqual(of(15), { hosts: 15, others: [] });
  });
