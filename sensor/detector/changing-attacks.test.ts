import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createCrowd,
  createFlood,
  createLookups,
  createTransfer,
  dividedThresholds,
  type FloodClass,
  observeFrame,
  observeStreams,
  packetsAtThreshold,
  type Stream,
  startSecond,
  victim,
} from '#sensor/testing/attack-traffic.ts';
import { ethernet, ip, reverse, Tcp, tcp, udp } from '#sensor/testing/frames.ts';
import { createOrdinary } from '#sensor/testing/ordinary-traffic.ts';
import { Detector } from './index.ts';

const thresholds = dividedThresholds(200);
const scope = { prefixes: ['192.0.2.0/24', '2001:db8:7::/48'], addresses: [] };
const background: Stream = { step: createLookups(9), perSecond: 5, from: 0, to: 40 };

function flood(name: FloodClass, from: number, to: number, ratio = 3): Stream {
  const shape = { class: name, version: 4, direction: 'inbound', ratio } as const;
  return { step: createFlood(shape, 1), perSecond: packetsAtThreshold(shape, thresholds) * ratio, from, to };
}

const newDetector = () => new Detector({ scope, thresholds, key: [1, 2] });

function found(streams: readonly Stream[]) {
  const detector = newDetector();
  observeStreams(detector, [background, ...streams]);
  return detector.finish().incidents;
}

const attacksOf = (streams: readonly Stream[]) =>
  found(streams).filter(({ severity }) => severity === 'attack');
const incidentsOf = (streams: readonly Stream[]) => found(streams).map((one) => [one.class, one.severity]);

test('NET-1.1: the class of an incident follows its attack within 10 s; each class keeps its own times and peak', () => {
  for (const to of [8, 12, 17, 22]) {
    const streams = [flood('syn_flood', 2, Math.min(to, 7))];
    if (to > 8) streams.push(flood('udp_flood', 7, Math.min(to, 12)));
    if (to > 12) streams.push(flood('icmp_flood', 12, Math.min(to, 17)));
    if (to > 17) streams.push(flood('amplification', 17, 22));
    const attacks = attacksOf(streams);
    const classes = ['syn_flood', 'udp_flood', 'icmp_flood', 'amplification'].slice(0, streams.length);
    assert.deepEqual(
      attacks.map((one) => one.class),
      classes.slice(-1),
    );
    const [{ vectorTimes, vectors }] = attacks as [(typeof attacks)[number]];
    assert.deepEqual(
      vectorTimes.map((one) => [
        one.class,
        one.startedAt / 1000 - startSecond,
        one.lastObservedAt / 1000 - startSecond,
      ]),
      classes.map((name, i) => [name, 2 + i * 5, 7 + i * 5]),
    );
    assert.equal(vectorTimes[0]!.peak.pps, thresholds.inbound.syn_pps * 3);
    assert.equal(vectors[0]!.class, classes.at(-1));
  }
});

test('NET-1.1: three loud seconds of a minute that are apart are an attack since the first; two are none', () => {
  const pulses = (count: number) =>
    Array.from({ length: count }, (_, i) => flood('udp_flood', 2.05 + i * 8, 2.95 + i * 8, 10));
  assert.deepEqual(attacksOf(pulses(2)), []);
  const [attack, ...others] = attacksOf(pulses(4));
  assert.equal(others.length, 0);
  assert.deepEqual([attack!.class, attack!.startedAt / 1000 - startSecond], ['udp_flood', 2]);
  assert.ok(attack!.detectedAt / 1000 - startSecond <= 20);
});

test('NET-1.1: unasked large answers of one port from many addresses are amplification', () => {
  for (const [fromPort, bytes, name] of [
    [4500, 400, 'amplification'],
    [4500, 60, 'udp_flood'],
    [0, 400, 'udp_flood'],
  ] as const) {
    let sent = 0;
    const step = () => {
      sent += 1;
      const from = `11.${sent & 255}.${(sent >> 4) & 7}.9`;
      return [
        ethernet(
          udp(
            { from, fromPort: fromPort || 1024 + ((sent * 7919) & 32_767), to: victim(4), toPort: 7000 },
            new Uint8Array(bytes),
          ),
        ),
      ];
    };
    const [attack] = attacksOf([{ step, perSecond: thresholds.inbound.udp_pps * 4, from: 2, to: 8 }]);
    assert.equal(attack!.class, name);
    const { ports, source_ports: sourcePorts } = attack!.vectors[0]!;
    assert.deepEqual(ports, [name === 'amplification' ? 4500 : 7000]);
    assert.deepEqual(sourcePorts, name === 'udp_flood' && fromPort > 0 ? [4500] : []);
  }
});

test('NET-1.1: fragments of amplified answers are amplification; fragments alone are not', () => {
  const answer = udp(
    { from: '11.2.3.4', fromPort: 53, to: victim(4), toPort: 7000 },
    new Uint8Array(3000),
  ).subarray(20);
  let sent = 0;
  const step = () => {
    sent += 1;
    const ends = { from: `11.${sent & 255}.3.4`, to: victim(4), protocol: 17, id: sent & 0xffff };
    return [0, 1480, 2960].map((offset) =>
      ethernet(ip(answer.subarray(offset, offset + 1480), { ...ends, offset, more: offset < 2960 })),
    );
  };
  const [attack] = attacksOf([{ step, perSecond: thresholds.inbound.fragment_pps * 2, from: 2, to: 8 }]);
  assert.deepEqual([attack!.class, attack!.vectors[0]!.ports], ['amplification', [53]]);
  const [alone] = attacksOf([flood('fragment_flood', 2, 8)]);
  assert.equal(alone!.class, 'fragment_flood');
});

test('NET-1.1: short connections that complete are no attack; handshakes alone are, with no other vector', () => {
  const perSecond = thresholds.inbound.connections_per_second * 3;
  let port = 1024;
  const connection = (data: readonly (readonly [isBack: boolean, bytes: number])[]) => () => {
    port = port === 60_000 ? 1024 : port + 1;
    const ends = { from: `11.9.${port & 255}.${port >> 8}`, fromPort: port, to: victim(4), toPort: 80 };
    const back = { from: ends.to, fromPort: 80, to: ends.from, toPort: port };
    const opening = [tcp(ends, Tcp.syn, 1), tcp(back, Tcp.syn | Tcp.ack, 1), tcp(ends, Tcp.ack, 2)];
    const rest = data.map(([isBack, bytes]) =>
      tcp(isBack ? back : ends, Tcp.ack | Tcp.push, 2, new Uint8Array(bytes)),
    );
    return [...opening, ...rest].map((one) => ethernet(one));
  };
  const short = connection([
    [false, 100],
    [true, 150],
    [false, 0],
    [true, 0],
  ]);
  assert.deepEqual(attacksOf([{ step: short, perSecond, from: 2, to: 8 }]), []);
  const [attack] = attacksOf([{ step: connection([]), perSecond, from: 2.4, to: 8 }]);
  assert.equal(attack!.class, 'connection_flood');
  assert.deepEqual(
    attack!.vectorTimes.map((one) => one.class),
    ['connection_flood'],
  );
});

test('NET-1.1: connections that carry nothing are an attack beside a heavy transfer of the same address, others are none', () => {
  const transfer: Stream = {
    step: createTransfer('tcp', '198.51.100.1', victim(4)),
    perSecond: thresholds.inbound.pps * 0.3,
    from: 0,
    to: 10,
  };
  const [attack] = attacksOf([transfer, flood('connection_flood', 3.4, 10, 2)]);
  assert.equal(attack!.class, 'connection_flood');
  assert.ok(attack!.detectedAt <= (startSecond + 3.4 + 3) * 1000);
  const perSecond = thresholds.inbound.connections_per_second * 3;
  assert.deepEqual(attacksOf([transfer, { step: createCrowd(4, 3), perSecond, from: 3.4, to: 10 }]), []);
});

test('NET-1.1: what lasts one second is no attack: beside it a scan stays a scan, a transfer high volume', () => {
  let port = 0;
  const scan = () => {
    port += 1;
    const ends = { from: '198.51.100.66', fromPort: 50_000, to: victim(4), toPort: port };
    return [ethernet(tcp(ends, Tcp.syn, 1))];
  };
  const asks: Stream = { step: scan, perSecond: thresholds.inbound.syn_pps * 2, from: 2, to: 12 };
  assert.deepEqual(incidentsOf([asks, flood('udp_flood', 5, 6, 6)]), [['other', 'info']]);
  assert.deepEqual(incidentsOf([flood('udp_flood', 3, 4, 1.2), flood('udp_flood', 6, 7, 17)]), []);
  const perSecond = (thresholds.inbound.bps * 1.2) / 8 / (2 * 1460);
  const transfer = { step: createTransfer('tcp', '198.51.100.1', victim(4)), perSecond, from: 0, to: 12 };
  assert.deepEqual(incidentsOf([transfer, flood('syn_flood', 5, 6, 3), flood('udp_flood', 7, 8, 17)]), [
    ['high_volume', 'info'],
  ]);
});

test('NET-1.1: a scan of a busy web server is a scan, also after a minute of visits; a flood beside a proxy of many visitors is one', () => {
  const open = createCrowd(4, 3);
  const waiting: Uint8Array[][] = [];
  // Far clients: twenty others open before one completes its handshake.
  const visit = () => {
    const frames = open();
    waiting.push(frames.slice(2));
    return [...frames.slice(0, 2), ...(waiting.length > 20 ? waiting.shift()! : [])];
  };
  let port = 0;
  const ask = () => {
    port += 1;
    const ends = { from: '198.51.100.66', fromPort: 50_000, to: victim(4), toPort: port & 0xffff };
    return [ethernet(tcp(ends, Tcp.syn, 1))];
  };
  const scan: Stream = { step: ask, perSecond: thresholds.inbound.syn_pps * 2, from: 60, to: 72 };
  const { syn_pps: most } = thresholds.inbound;
  const visits: Stream = { step: visit, perSecond: most * 0.4, from: 0, to: 72 };
  assert.deepEqual(incidentsOf([visits, scan]), [['other', 'info']]);
  const one = open();
  const proxy: Stream = { step: () => one, perSecond: most * 2, from: 0, to: 12 };
  assert.deepEqual(incidentsOf([proxy, flood('syn_flood', 4, 12, 2)]), [['syn_flood', 'attack']]);
});

test('NET-1.1: one source that asks a port of every address of a prefix is a scan', () => {
  const detector = newDetector();
  const perSecond = thresholds.inbound.syn_pps * 8;
  for (let i = 0; i < perSecond * 8; i += 1) {
    const ends = { from: '198.51.100.66', fromPort: 50_000, to: `192.0.2.${1 + (i % 200)}`, toPort: 22 };
    observeFrame(detector, ethernet(tcp(ends, Tcp.syn, 1)), startSecond + i / perSecond);
  }
  const { incidents } = detector.finish();
  assert.deepEqual(
    incidents.map((one) => [one.class, one.severity, one.target.kind]),
    [['other', 'info', 'prefix']],
  );
});

test('NET-1.1: a capture of one direction: what rests on missing answers is information, other floods are attacks', () => {
  const download = ethernet(
    tcp(
      { from: '198.51.100.1', fromPort: 443, to: victim(4), toPort: 4000 },
      Tcp.ack,
      1,
      new Uint8Array(1400),
    ),
  );
  const found = (streams: readonly Stream[]) => {
    const detector = newDetector();
    observeStreams(detector, [{ step: () => [download], perSecond: 5, from: 0, to: 90 }, ...streams]);
    return detector.finish().incidents.map((one) => [one.class, one.severity]);
  };
  const perSecond = thresholds.inbound.pps * 2;
  assert.deepEqual(found([{ step: () => [download], perSecond, from: 70, to: 80 }]), [['ack_flood', 'info']]);
  assert.deepEqual(found([flood('syn_flood', 70, 80)]), [['syn_flood', 'attack']]);
  assert.deepEqual(found([{ step: () => [download], perSecond, from: 10, to: 20 }]), [
    ['ack_flood', 'attack'],
  ]);
});

test('NET-1.1: a server that answers nothing, under the usual noise, is attacked by a UDP flood as any other', () => {
  const noise = ethernet(
    udp({ from: '198.51.100.1', fromPort: 9000, to: victim(4), toPort: 1900 }, new Uint8Array(60)),
  );
  const detector = newDetector();
  observeStreams(detector, [
    { step: () => [noise], perSecond: 1, from: 0, to: 90 },
    flood('udp_flood', 70, 80),
  ]);
  assert.deepEqual(
    detector.finish().incidents.map((one) => [one.class, one.severity]),
    [['udp_flood', 'attack']],
  );
});

test('NET-1.1: 2,000 bots that have opened connections and then only send are a flood, decided in 3 s', () => {
  const bots = dividedThresholds(20);
  const detector = new Detector({ scope, thresholds: bots, key: [1, 2] });
  let next = 0;
  const ends = () => {
    const i = next++ % 2000;
    return { from: `11.${i >> 8}.${i & 255}.9`, fromPort: 5000 + (i % 1000), to: victim(4), toPort: 443 };
  };
  const visit = () => {
    const one = ends();
    const back = { from: one.to, fromPort: 443, to: one.from, toPort: one.fromPort };
    return [
      tcp(one, Tcp.syn, 1),
      tcp(back, Tcp.syn | Tcp.ack, 1),
      tcp(one, Tcp.ack, 2),
      tcp(one, Tcp.ack | Tcp.push, 2, new Uint8Array(100)),
      tcp(back, Tcp.ack | Tcp.push, 2, new Uint8Array(500)),
    ].map((packet) => ethernet(packet));
  };
  observeStreams(detector, [
    { step: visit, perSecond: 400, from: 0, to: 6 },
    { step: () => [ethernet(tcp(ends(), Tcp.ack, 3))], perSecond: bots.inbound.pps * 2, from: 6.3, to: 12 },
  ]);
  const attacks = detector.finish().incidents.filter(({ severity }) => severity === 'attack');
  assert.deepEqual(
    attacks.map((one) => one.class),
    ['ack_flood'],
  );
  assert.ok(attacks[0]!.detectedAt / 1000 - startSecond - 6.3 <= 3);
});

test('NET-1.1: what a server answers is a reflection from ten times the question on; of services that hold sessions it is none', () => {
  // Port, bytes of a question and of its answer, and whether it reflects.
  for (const [port, asked, answered, reflects] of [
    [11_211, 15, 1400, true],
    [123, 8, 440, true],
    [53, 40, 1200, true],
    [53, 40, 500, false],
    [53, 40, 150, false],
    // OpenVPN, STUN and games: acknowledgements are small too.
    [1194, 60, 1400, false],
    [3478, 40, 1200, false],
    [27_015, 30, 1100, false],
    [443, 40, 1300, false],
  ] as const) {
    let next = 0;
    const step = () => {
      next += 1;
      const ends = { from: `11.4.${next % 30}.9`, fromPort: 5000, to: victim(4), toPort: port };
      const answer = udp(reverse(ends), new Uint8Array(answered));
      return [ethernet(udp(ends, new Uint8Array(asked))), ethernet(answer)];
    };
    const perSecond = (thresholds.outbound.amplification_spread_bps * 2) / 8 / (answered + 28);
    const attacks = attacksOf([{ step, perSecond, from: 1.3, to: 12 }]);
    assert.deepEqual(
      attacks.map((one) => [
        one.direction,
        one.class,
        one.target.value,
        one.vectors.map(({ ports }) => ports),
      ]),
      reflects ? [['outbound', 'reflector', victim(4), [[port]]]] : [],
      `port ${port}, ${answered} for ${asked}`,
    );
    if (reflects) assert.ok(attacks[0]!.detectedAt <= (startSecond + 1.3 + 3) * 1000);
  }
});

test('NET-1.1: a server that reflects is found beside a service of the same address that holds sessions on such a port', () => {
  for (const kind of ['OpenVPN server', 'SIP trunk']) {
    const beside = createOrdinary(kind, { version: 4, thresholds, seed: 5, ratio: 1, isUnderWay: true });
    const shape = { class: 'amplification', version: 4, direction: 'outbound', ratio: 2 } as const;
    const perSecond = packetsAtThreshold(shape, thresholds) * 2;
    const attacks = attacksOf([
      { ...beside, from: 0, to: 10 },
      { step: createFlood(shape, 1), perSecond, from: 3.4, to: 10 },
    ]);
    assert.deepEqual(
      attacks.map((one) => [one.class, one.direction]),
      [['reflector', 'outbound']],
      kind,
    );
  }
});
