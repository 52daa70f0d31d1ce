// Slow: eight captures of interfaces, each in two namespaces of its own.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { uniqueName } from '#sensor/testing/link-names.ts';
import type { CaptureState, LocalWindow } from './index.ts';

const probe = fileURLToPath(new URL('../testing/capture-probe.ts', import.meta.url));
const isRoot = process.getuid?.() === 0;

interface Probed<T> {
  minutes: TelemetryMinute[];
  gaps: TelemetryGap[];
  windows: LocalWindow[];
  log: string[];
  states: CaptureState[];
  result: T;
}

/**
 * Runs the probe between two namespaces joined by va and vb. Returns its output and the nftables counters at va, as IP
 * lengths.
 */
function probeBetween<T>(
  t: TestContext,
  mode: string,
  options: object = {},
  wrap: string[] = [],
): Probed<T> & { counted: { packets: number; bytes: number } } {
  const [here, there] = [uniqueName(), uniqueName()];
  const ip = (...words: string[]) => execFileSync('ip', words);
  for (const ns of [here, there]) {
    ip('netns', 'add', ns);
    t.after(() => spawnSync('ip', ['netns', 'del', ns]));
  }
  ip('-n', here, 'link', 'add', 'va', 'type', 'veth', 'peer', 'name', 'vb', 'netns', there);
  const ends = [
    [here, 'va', '10.9.0.1/24'],
    [there, 'vb', '10.9.0.2/24'],
  ] as const;
  for (const [ns, name, address] of ends) {
    const sysctl = `echo 1 > /proc/sys/net/ipv6/conf/${name}/disable_ipv6`;
    ip('netns', 'exec', ns, 'sh', '-c', sysctl);
    ip('-n', ns, 'addr', 'add', address, 'dev', name);
    ip('-n', ns, 'link', 'set', name, 'up');
  }
  const nft = (...words: string[]) =>
    execFileSync('ip', ['netns', 'exec', here, 'nft', ...words], { encoding: 'utf8' });
  nft('add table netdev truth');
  for (const hook of ['ingress', 'egress']) {
    nft(`add chain netdev truth ${hook} { type filter hook ${hook} device va priority 0; }`);
    nft(`add rule netdev truth ${hook} meta protocol { ip, ip6 } counter`);
  }
  const said = execFileSync(
    'ip',
    [
      'netns',
      'exec',
      here,
      ...wrap,
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      probe,
      mode,
    ].concat(JSON.stringify({ peer: there, ...options })),
    { encoding: 'utf8', maxBuffer: 256 * 1024 * 1024, timeout: 600_000 },
  );
  const [ingress, egress] = [...nft('list ruleset').matchAll(/counter packets (\d+) bytes (\d+)/g)].map(
    (match) => ({ packets: Number(match[1]), bytes: Number(match[2]) }),
  );
  // Outgoing lengths include 14 bytes of Ethernet.
  const counted = {
    packets: ingress!.packets + egress!.packets,
    bytes: ingress!.bytes + egress!.bytes - 14 * egress!.packets,
  };
  return { ...(JSON.parse(said) as Probed<T>), counted };
}

/** A test that needs packet sockets and namespaces. Without root it is skipped with a message; in CI it must run. */
function rootTest(title: string, body: (t: TestContext) => void): void {
  test(title, (t) => {
    if (isRoot) return body(t);
    assert.ok(!process.env.CI, 'this test needs root: run the gate as root in CI');
    t.diagnostic('left out: needs root for a packet socket in a network namespace');
  });
}

const sumOf = (
  minutes: readonly TelemetryMinute[],
  field: 'packets' | 'ipPackets' | 'ipBytes' | 'kernelDropped',
) => minutes.reduce((sum, minute) => sum + minute.totals[field], 0);

/** The parts of the minutes that do not depend on where they were cut. */
function contentOf(minutes: readonly TelemetryMinute[]): unknown {
  const hosts = new Map<string, unknown[]>();
  const rows = new Map<string, number>();
  for (const host of minutes.flatMap((minute) => minute.hosts)) {
    const known = (hosts.get(host.address) ?? [0, 0, 0]) as number[];
    hosts.set(host.address, [
      known[0]! + host.rxBytes,
      known[1]! + host.txBytes,
      known[2]! + host.packets,
      host.deviceKey,
    ]);
  }
  for (const row of minutes.flatMap((minute) => minute.usage)) {
    const key = [row.client, row.server, row.protocol, row.serverPort, row.direction, row.name].join(' ');
    rows.set(key, (rows.get(key) ?? 0) + row.clientBytes + row.serverBytes);
  }
  const sorted = (map: Map<string, unknown>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    packets: sumOf(minutes, 'packets'),
    ipBytes: sumOf(minutes, 'ipBytes'),
    hosts: sorted(hosts),
    rows: sorted(rows),
  };
}

interface Sent {
  packets: number;
  ipPackets: number;
  ipBytes: number;
}

rootTest(
  'NET-2.5.1, NET-8.6: two fanout members together report the same as one thread, to the byte',
  (t) => {
    const alone = probeBetween<Sent>(t, 'frames');
    const shared = probeBetween<Sent>(t, 'frames', { members: 2 });
    assert.equal(shared.states[0]!.members, 2);
    for (const one of [alone, shared]) {
      assert.equal(sumOf(one.minutes, 'packets'), one.result.packets);
      assert.equal(sumOf(one.minutes, 'ipPackets'), one.result.ipPackets);
      assert.equal(sumOf(one.minutes, 'ipBytes'), one.result.ipBytes);
      assert.equal(sumOf(one.minutes, 'kernelDropped'), 0);
      const windows = one.windows.reduce((sum, window) => sum + window.totals.ipBytes, 0);
      assert.equal(windows, one.result.ipBytes, 'live windows');
    }
    assert.deepEqual(contentOf(shared.minutes), contentOf(alone.minutes));
    const keys = new Set(
      alone.minutes.flatMap((minute) => minute.hosts).map((host) => host.deviceKey.split('|')[0]),
    );
    assert.ok(keys.has('va.100'), `the outer tag of two is the segment's: ${[...keys]}`);
  },
);

rootTest(
  'NET-8.B: merged frames count as their segments, and their bytes as nftables counts them, with fanout too',
  (t) => {
    const probed = probeBetween<{ segments: number }>(t, 'transfer', { members: 2 });
    assert.equal(sumOf(probed.minutes, 'kernelDropped'), 0);
    assert.equal(sumOf(probed.minutes, 'ipBytes'), probed.counted.bytes);
    assert.equal(sumOf(probed.minutes, 'ipPackets'), probed.result.segments);
    assert.ok(
      probed.counted.packets * 2 < probed.result.segments,
      'some frames must be merged for this test',
    );
    assert.deepEqual([probed.states[0]!.method, probed.states[0]!.countsSegments], ['ring', true]);
  },
);

rootTest('tcpdump replaces the ring on request, counts the same, and reports its limits', (t) => {
  const probed = probeBetween<Sent>(t, 'both', { method: 'tcpdump', megabytes: 1 });
  assert.equal(
    sumOf(probed.minutes, 'ipBytes'),
    probed.counted.bytes + 128,
    'nftables does not count the doubly tagged frame as IP',
  );
  const merged = probed.minutes.reduce((sum, minute) => sum + (minute.totals.mergedFrames ?? 0), 0);
  assert.ok(merged > 0, 'the packet count is known to be too low');
  assert.deepEqual([probed.states[0]!.method, probed.states[0]!.countsSegments], ['tcpdump', false]);
  assert.ok(
    probed.log.some((line) => line.includes('capture runs through tcpdump')),
    probed.log.join('\n'),
  );
});

rootTest(
  'an interface that is renamed, removed and created again is captured again, and the minutes between are gaps',
  (t) => {
    const probed = probeBetween<null>(t, 'comeAndGo');
    assert.equal(sumOf(probed.minutes, 'ipPackets') >= 7, true);
    assert.ok(probed.gaps.some((gap) => gap.capture === 'va' && gap.reason === 'capture_failed'));
    assert.ok(probed.minutes.some((minute) => minute.observedMs < 60_000));
  },
);

rootTest('on the loopback interface, where a packet leaves and arrives, it counts once', (t) => {
  for (const method of ['ring', 'tcpdump']) {
    const { minutes } = probeBetween<unknown>(t, 'toItself', { name: 'lo', method });
    const datagrams = minutes.flatMap((minute) => minute.usage).filter((row) => row.serverPort === 9999);
    const packets = datagrams.reduce((sum, row) => sum + row.packets, 0);
    const bytes = datagrams.reduce((sum, row) => sum + row.clientBytes, 0);
    assert.deepEqual([packets, bytes], [50, 50 * 128], method);
  }
});

rootTest('CAP_NET_RAW alone is enough, for a user who is not root', (t) => {
  const user = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all,+net_raw'];
  const wrap = [
    ...user,
    '--ambient-caps=-all,+net_raw',
    '--bounding-set=-all,+net_raw',
    'env',
    'HOME=/nonexistent',
  ];
  const probed = probeBetween<{ uid: number }>(t, 'listen', { members: 2 }, wrap);
  assert.deepEqual(probed.result, { uid: 65_534, capabilities: '0000000000002000' });
  assert.deepEqual([probed.states[0]!.method, probed.states[0]!.members], ['ring', 2]);
});
