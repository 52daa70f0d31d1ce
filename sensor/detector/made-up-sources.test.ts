import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import {
  createLookups,
  dividedThresholds,
  observeStreams,
  type Stream,
  startSecond,
  victim,
} from '#sensor/testing/attack-traffic.ts';
import { createDetectingSensor, detectionPlan } from '#sensor/testing/detecting-sensor.ts';
import { ethernet, ip, reverse, type SegmentOptions, Tcp, tcp, udp } from '#sensor/testing/frames.ts';
import { thresholds as planThresholds } from '#sensor/testing/live-attacks.ts';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { Detector } from './index.ts';

const thresholds = dividedThresholds(200);
const scope = { prefixes: ['192.0.2.0/24', '2001:db8:7::/48'], addresses: [] };
const server = '52:54:00:00:00:07';
const router = '52:54:00:00:00:fe';
const background: Stream = { step: createLookups(9), perSecond: 5, from: 0, to: 40 };

/** Random unicast addresses that are not protected. */
function strangers(version: 4 | 6, seed: number): () => string {
  const random = seededRandom(seed);
  const part = (max: number) => Math.floor(random() * max);
  return version === 4
    ? () => `${11 + part(80)}.${part(256)}.${part(256)}.${1 + part(250)}`
    : () =>
        `2a00:${part(65_536).toString(16)}:${part(65_536).toString(16)}::${(1 + part(60_000)).toString(16)}`;
}

interface Flood {
  version?: 4 | 6;
  ratio?: number;
  mac?: string;
  source?: () => string;
  to?: string;
  from?: number;
}

function synFlood({ version = 4, ratio = 2, mac = server, from = 2.6, ...rest }: Flood = {}): Stream {
  const { source = strangers(version, 1), to = version === 4 ? '198.51.100.66' : '2a01:db8::66' } = rest;
  let port = 1024;
  const step = () => {
    port = 1024 + ((port + 7) % 60_000);
    return [ethernet(tcp({ from: source(), fromPort: port, to, toPort: 80 }, Tcp.syn, 1), { source: mac })];
  };
  return { step, perSecond: thresholds.outbound.syn_pps * ratio, from, to: 12 };
}

function incidentsOf(...streams: Stream[]) {
  const capture = { name: 'test0', linkBps: () => null };
  const detector = new Detector({ scope, thresholds, key: [1, 2], capture });
  observeStreams(detector, [background, ...streams]);
  return detector.finish().incidents;
}

test('NET-1.1: a flood with made-up sources is an outbound attack of the MAC that sends it, decided in time', () => {
  for (const version of [4, 6] as const)
    for (const ratio of [1.1, 2]) {
      const [attack, ...others] = incidentsOf(synFlood({ version, ratio }));
      assert.deepEqual(others, []);
      const { target, direction, class: name, severity, remotes, vectors } = attack!;
      assert.deepEqual(
        { target, direction, name, severity },
        {
          target: { kind: 'capture', value: 'test0', mac: server },
          ...{ direction: 'outbound', name: 'syn_flood', severity: 'attack' },
        },
      );
      assert.deepEqual(
        remotes.map(({ prefix }) => prefix),
        [version === 4 ? '198.51.100.0/24' : '2a01:db8::/48'],
      );
      assert.deepEqual(vectors[0]!.ports, [80]);
      const took = attack!.detectedAt / 1000 - startSecond - 2.6;
      assert.ok(took <= (ratio === 2 ? 3 : 6), `decided after ${took} s at ${ratio} times`);
    }
});

test('NET-1.1: two servers that make their sources up are two attacks, and what is below the threshold is none', () => {
  const other = '52:54:00:00:00:08';
  const found = incidentsOf(synFlood(), synFlood({ mac: other }), synFlood({ mac: router, ratio: 0.9 }));
  assert.deepEqual(found.map(({ target }) => target.mac).sort(), [server, other]);
});

test('NET-1.1: what a router brings in is not sent from made-up sources, also to addresses that are not protected', () => {
  const asked = synFlood({ mac: router, to: victim(4), ratio: 0.2, from: 1 });
  const transit = synFlood({ mac: router, ratio: 5 });
  assert.deepEqual(incidentsOf(asked, transit), []);
});

test('NET-1.1: ordinary traffic of other addresses behind a server’s MAC is no attack', () => {
  const own = synFlood({ source: () => victim(4), ratio: 0.1, from: 0 });
  assert.deepEqual(incidentsOf(own, synFlood({ source: () => '198.51.100.9', ratio: 5 })), [], 'one address');
  assert.deepEqual(
    incidentsOf(own, synFlood({ source: strangersIn('10.4'), to: '10.9.9.9', ratio: 5 })),
    [],
    'a private network',
  );
  // Forwarded for many clients: each connection is accepted, each tunnel answered.
  const source = strangers(4, 3);
  const forwarded: Stream = {
    step: () => {
      const ends: SegmentOptions = { from: source(), fromPort: 4000, to: '198.51.100.66', toPort: 443 };
      const back = reverse(ends);
      const out = [tcp(ends, Tcp.syn, 1), tcp(ends, Tcp.ack, 2), tcp(ends, Tcp.ack, 2, new Uint8Array(900))];
      const frames = out.map((one) => ethernet(one, { source: server }));
      const answers = [tcp(back, Tcp.syn | Tcp.ack, 1), tcp(back, Tcp.ack, 2, new Uint8Array(1400))];
      const [accepted, answered] = answers.map((one) => ethernet(one, { source: router }));
      return [frames[0]!, accepted!, frames[1]!, frames[2]!, answered!];
    },
    ...{ perSecond: thresholds.outbound.pps, from: 2, to: 10 },
  };
  assert.deepEqual(incidentsOf(own, forwarded), []);
});

const strangersIn = (start: string) => {
  const random = seededRandom(5);
  return () => `${start}.${Math.floor(random() * 250)}.${1 + Math.floor(random() * 250)}`;
};

const owners = { owners_version: 1, owners: [{ address: '192.0.2.7', macs: [server] }] };

for (const role of ['uplink', 'bridge'] as const)
  test(`NET-1.1: live on a ${role}, the server whose MAC sends from made-up sources is blamed, and its address has no such traffic`, async (t) => {
    const one = await createDetectingSensor(temporaryFolder(t), { role, from: 0 });
    one.follow(detectionPlan(planThresholds, owners));
    await one.play([background, synFlood({ from: 3.4 })], 130);
    const told = one.incidents();
    const [first] = told;
    assert.deepEqual(
      [first!.target, first!.direction, first!.class, first!.deviceKey, first!.severity, first!.isSpoofed],
      [{ kind: 'host', value: '192.0.2.7' }, 'outbound', 'syn_flood', `eth0|${server}`, 'attack', true],
    );
    assert.deepEqual([...new Set(told.map(({ id }) => id))], [first!.id]);
    assert.ok(first!.detectedAtMs <= (startSecond + 6.4) * 1000);
    assert.equal(told.at(-1)!.state, 'recovered');
    const rows = one.minutes.flatMap(({ detector }) => detector?.rows ?? []);
    assert.ok(rows.length > 0 && rows.every(({ attackPackets }) => attackPackets === 0));
    await one.stop();
  });

test('NET-1.1: live on a bridge, one flow from one address that is not the server’s counts too; without inventory the capture is blamed', async (t) => {
  const ends = { from: '198.51.100.9', fromPort: 4000, to: '203.0.113.5', toPort: 9 };
  const frame = ethernet(udp(ends, new Uint8Array(20)), { source: server });
  const flood = { step: () => [frame], perSecond: thresholds.outbound.pps * 2, from: 3.4, to: 12 };
  const blamed = async (more: object, stream: Stream) => {
    const one = await createDetectingSensor(temporaryFolder(t), { role: 'bridge' });
    one.follow(detectionPlan(planThresholds, more as Record<string, unknown>));
    await one.play([background, stream], 10);
    const found = one.incidents().filter(({ revision }) => revision === 1);
    await one.stop();
    return found.map(({ target, class: name, deviceKey }) => [target.kind, target.value, name, deviceKey]);
  };
  assert.deepEqual(await blamed(owners, flood), [['host', '192.0.2.7', 'udp_flood', `eth0|${server}`]]);
  assert.deepEqual(await blamed({}, synFlood()), [['capture', 'eth0', 'syn_flood', `eth0|${server}`]]);
  // A MAC that the inventory does not name and that never sent from a server's address.
  assert.deepEqual(await blamed(owners, synFlood({ mac: router })), []);
});

test('NET-1.1: GRE from made-up sources is a protocol flood of its sender', () => {
  const source = strangers(4, 7);
  const step = () => [
    ethernet(ip(new Uint8Array(40), { from: source(), to: '198.51.100.66', protocol: 47 }), {
      source: server,
    }),
  ];
  const [attack] = incidentsOf({ step, perSecond: thresholds.outbound.pps * 2, from: 2, to: 9 });
  assert.deepEqual([attack!.class, attack!.vectors[0]!.protocols], ['protocol_flood', [47]]);
});
