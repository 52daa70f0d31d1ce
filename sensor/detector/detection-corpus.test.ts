import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { detectFile } from '#sensor/capture-reader/index.ts';
import { corpusFolder } from '#sensor/testing/corpus.ts';
import { printInProcess } from '#sensor/testing/read-in-process.ts';

const folder = join(corpusFolder(), 'detection');
const everything = '203.0.113.0/24';

interface Answer {
  capture: { first_at: string | null };
  detector: { complete: boolean };
  incidents: {
    target: { kind: string; value: string; mac?: string };
    class: string;
    severity: string;
    direction: string;
    started_at: string;
    detected_at: string;
    vectors: {
      class: string;
      ports: number[];
      protocols: { number: number; name: string | null }[];
      started_at: string;
      last_observed_at: string;
      peak: { bps: number; pps: number };
    }[];
  }[];
}

/** What `sensor detect` says of a capture of the corpus, or of a file by its path, by thresholds of a hundredth, and its warnings. */
async function answerOf(name: string, protect: string | null) {
  const { status, stdout, stderr } = await printInProcess((screen) =>
    detectFile(
      name.startsWith('/') ? name : join(folder, `${name}.pcap.gz`),
      { json: true, thresholds: join(folder, 't100.json'), ...(protect && { protect: [protect] }) },
      screen,
    ),
  );
  assert.equal(status, 0);
  return { found: JSON.parse(stdout) as Answer, stderr };
}

const isAttack = ({ severity }: { severity: string }) => severity === 'attack';

for (const name of [
  'vxlan8472-2nodes',
  'gre-fragmented-tunnel',
  'quic-8',
  'wg-hub-30clients',
  'gameserver-600players',
  'esp-6peers',
])
  test(`NET-1.1: ${name}: ordinary traffic over every threshold is no attack`, {
    skip: !existsSync(folder),
  }, async () => {
    const { found } = await answerOf(name, everything);
    assert.deepEqual(found.incidents.filter(isAttack), []);
  });

/** The attacks of a capture. */
async function attacksOf(name: string, protect: string | null = everything) {
  return (await answerOf(name, protect)).found.incidents.filter(isAttack);
}

const skip = !existsSync(folder);

test('NET-1.1: web-nokeepalive: connections that all complete are no attack, and their openings no vector', {
  skip,
}, async () => {
  const { found } = await answerOf('web-nokeepalive-150cps-short', everything);
  assert.deepEqual(found.incidents.filter(isAttack), []);
  assert.ok(found.incidents.every(({ vectors }) => vectors.every(({ class: name }) => name !== 'syn_flood')));
});

test('NET-1.1: hscan: one source that asks a port of a whole prefix is a scan', { skip }, async () => {
  const { found } = await answerOf('hscan-24-port22', everything);
  assert.deepEqual(
    found.incidents.map((one) => [one.class, one.severity]),
    [['other', 'info']],
  );
});

test('NET-1.1: vector-rotate: one incident follows its vectors; each has its own times, peak and ports', {
  skip,
}, async () => {
  const attacks = await attacksOf('vector-rotate');
  assert.equal(attacks.length, 1);
  const [{ class: last, vectors }] = attacks as [Answer['incidents'][number]];
  assert.equal(last, 'amplification');
  assert.deepEqual(
    vectors.map((one) => one.class),
    ['syn_flood', 'udp_flood', 'icmp_flood', 'amplification'],
  );
  for (const [i, one] of vectors.entries()) {
    const took = Date.parse(one.last_observed_at) - Date.parse(one.started_at);
    assert.ok(took >= 7000 && took <= 10_000, `${one.class} took ${took} ms`);
    if (i > 0)
      assert.ok(Math.abs(Date.parse(one.started_at) - Date.parse(vectors[i - 1]!.last_observed_at)) <= 2000);
    assert.ok(one.peak.pps > 0 && one.peak.bps > 0);
  }
  assert.deepEqual(vectors[3]!.ports, [53]);
});

test('NET-1.1: stopddos: fragments of amplified answers are their amplification, from port 53', {
  skip,
}, async () => {
  const attacks = await attacksOf('stopddos-amp.dns.RRSIG.fragmented', null);
  assert.ok(attacks.length > 0);
  for (const one of attacks) {
    assert.equal(one.class, 'amplification');
    assert.deepEqual(one.vectors[0]!.ports, [53]);
  }
});

test('NET-1.1: amp-ports: unasked answers of many reflectors are amplification, from any port', {
  skip,
}, async () => {
  const attacks = await attacksOf('amp-ports-2x-spread');
  // The file has 7 victims, its description speaks of 25.
  assert.equal(attacks.length, 7);
  for (const one of attacks) {
    assert.equal(one.class, 'amplification');
  }
  assert.deepEqual(
    attacks.flatMap((one) => one.vectors[0]!.ports).sort((a, b) => a - b),
    [53, 443, 500, 623, 3389, 10_074, 32_414],
  );
});

test('NET-1.1: protos: a flood of an IP protocol is told by its number and name', { skip }, async () => {
  const attacks = await attacksOf('protos');
  assert.deepEqual(
    attacks
      .map(({ target, class: name, vectors }) => [
        target.value,
        name,
        ...vectors.flatMap((one) => [one.class, one.protocols]),
      ])
      .sort(),
    [
      ['203.0.113.1', 50, 'ESP'] as const,
      ['203.0.113.2', 51, 'AH'] as const,
      ['203.0.113.3', 4, 'IP-in-IP'] as const,
      ['203.0.113.4', 41, '6in4'] as const,
      ['203.0.113.5', 47, 'GRE'] as const,
    ].map(([target, number, name]) => [target, 'protocol_flood', 'protocol_flood', [{ number, name }]]),
  );
});

test('NET-1.1: outbound-memcached: a server whose service answers more than was asked is a reflector, from its port', {
  skip,
}, async () => {
  const { found } = await answerOf('outbound-memcached-7.8Mbit', everything);
  assert.deepEqual(
    found.incidents.map(({ target, direction, class: name, severity, vectors }) => [
      ...[target.value, direction, name, severity],
      vectors.map((one) => [one.class, one.ports]),
    ]),
    [['203.0.113.10', 'outbound', 'reflector', 'attack', [['reflector', [11_211]]]]],
  );
});

test('NET-1.1: outbound-spoofed: a flood with made-up sources is an attack of the MAC that sends it', {
  skip,
}, async () => {
  const { found } = await answerOf('outbound-spoofed-syn-30x', everything);
  assert.deepEqual(
    found.incidents.map(({ target, direction, class: name, severity }) => [
      ...[target, direction, name, severity],
    ]),
    [
      [
        { kind: 'capture', value: 'outbound-spoofed-syn-30x.pcap.gz', mac: '02:00:00:00:00:02' },
        ...['outbound', 'syn_flood', 'attack'],
      ],
    ],
  );
  const [{ started_at: started, detected_at: detected }] = found.incidents as [Answer['incidents'][number]];
  assert.ok(Date.parse(detected) - Date.parse(started) <= 3000, `${started} to ${detected}`);
});

test('NET-1.1: pulse: a loud second every five seconds is an attack from the third on', {
  skip,
}, async () => {
  const attacks = await attacksOf('pulse-0.9s-every5s-10x');
  assert.equal(attacks.length, 1);
  const [{ started_at: started, detected_at: detected }] = attacks as [Answer['incidents'][number]];
  assert.ok(Date.parse(detected) - Date.parse(started) <= 12_500, `${started} to ${detected}`);
});

test('NET-1.1: v6-64rand: a flood over the addresses of one customer is an incident of its /64, within 3 s', {
  skip,
}, async () => {
  const attacks = await attacksOf('v6-64rand-1.67udp', '2001:db8:5:7::/64');
  assert.deepEqual(
    attacks.map((one) => [one.class, one.target.value]),
    [['udp_flood', '2001:db8:5:7::/64']],
  );
  const [{ started_at: started, detected_at: detected }] = attacks as [Answer['incidents'][number]];
  assert.ok(Date.parse(detected) - Date.parse(started) <= 3000, `${started} to ${detected}`);
});

test('NET-1.1: any-sll2: a packet that three interfaces recorded counts once, and the command says so', {
  skip,
}, async () => {
  const { found, stderr } = await answerOf('any-sll2-3x', everything);
  assert.deepEqual(found.incidents, []);
  assert.match(stderr, /packets that another one had recorded already were not counted again/);
});

test('NET-1.1: time-all-zero: packets without times are not judged as complete', { skip }, async () => {
  const { found, stderr } = await answerOf('time-all-zero', everything);
  assert.equal(found.detector.complete, false);
  assert.equal(found.capture.first_at, null);
  assert.match(stderr, /The packets have no times/);
});

test('NET-1.1: carpet-scattered: eight addresses of eight networks below a threshold are an incident of the capture, after quiet minutes', {
  skip,
}, async () => {
  // The file has the attack alone: six and a half minutes with its first packet each second stand before it.
  const file = gunzipSync(readFileSync(join(folder, 'carpet-scattered-8x0.9.pcap.gz')));
  const [header, packets] = [file.subarray(0, 24), file.subarray(24)];
  const first = packets.subarray(0, 16 + packets.readUInt32LE(8));
  const quiet = Array.from({ length: 390 }, (_, i) => {
    const packet = Buffer.from(first);
    packet.writeUInt32LE(first.readUInt32LE(0) - 390 + i, 0);
    return packet;
  });
  const place = mkdtempSync(join(tmpdir(), 'svc-carpet-'));
  try {
    const path = join(place, 'carpet.pcap');
    writeFileSync(path, Buffer.concat([header, ...quiet, packets]));
    const { found } = await answerOf(path, '198.18.0.0/16');
    assert.deepEqual(
      found.incidents.map((one) => [one.target.kind, one.class, one.severity]),
      [['capture', 'udp_flood', 'attack']],
    );
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
});
