// Own process: it listens on interfaces of the machine.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { uniqueName } from '#sensor/testing/link-names.ts';
import { openLiveSource } from './live-source.ts';

const probe = fileURLToPath(new URL('../testing/live-probe.ts', import.meta.url));
const isRoot = process.getuid?.() === 0;

/** Runs the probe in its own network namespace with the pair va and vb; `before` may prepare it further. */
function inNamespace(
  t: TestContext,
  mode: string,
  before: (ns: string) => void = () => {},
): { ns: string; result: never } {
  const ns = uniqueName();
  execFileSync('ip', ['netns', 'add', ns]);
  t.after(() => spawnSync('ip', ['netns', 'del', ns]));
  const run = (...command: string[]) =>
    execFileSync('ip', ['netns', 'exec', ns, ...command], { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  run('ip', 'link', 'add', 'va', 'type', 'veth', 'peer', 'name', 'vb');
  for (const name of ['va', 'vb']) {
    // The kernel's neighbour discovery would add frames.
    run('sh', '-c', `echo 1 > /proc/sys/net/ipv6/conf/${name}/disable_ipv6`);
  }
  for (const name of ['va', 'vb']) run('ip', 'link', 'set', name, 'up');
  before(ns);
  const result = JSON.parse(run(process.execPath, '--disable-warning=ExperimentalWarning', probe, mode));
  return { ns, result: result as never };
}

/** A test that needs packet sockets and namespaces. Without root it is skipped with a message; in CI it must run. */
function rootTest(title: string, body: (t: TestContext) => void): void {
  test(title, (t) => {
    if (isRoot) return body(t);
    assert.ok(!process.env.CI, 'this test needs root: run the gate as root in CI');
    t.diagnostic('left out: needs root for a packet socket in a network namespace');
  });
}

interface Counted {
  sent: { packets: number; ipPackets: number; ipBytes: number };
  totals: {
    packets: number;
    ipPackets: number;
    ipBytes: number;
    nonIpPackets: number;
    parserDropped: number;
  }[];
  dropped: number;
  tags: [number, number][];
}

rootTest(
  'a live capture counts every packet once, both ways, with IPv4, IPv6 and VLAN, as nftables does',
  (t) => {
    const nft = (ns: string, ...words: string[]) =>
      execFileSync('ip', ['netns', 'exec', ns, 'nft', ...words], { encoding: 'utf8' });
    const { ns, result } = inNamespace(t, 'count', (name) => {
      nft(name, 'add table netdev truth');
      for (const hook of ['ingress', 'egress']) {
        nft(name, `add chain netdev truth ${hook} { type filter hook ${hook} device va priority 0; }`);
        nft(name, `add rule netdev truth ${hook} meta protocol { ip, ip6 } counter`);
      }
    });
    const { sent, totals, dropped, tags } = result as Counted;
    const sum = (field: keyof Counted['totals'][number]) => totals.reduce((all, one) => all + one[field], 0);
    assert.equal(sum('packets'), sent.packets);
    assert.equal(sum('ipPackets'), sent.ipPackets);
    assert.equal(sum('ipBytes'), sent.ipBytes);
    assert.equal(sum('nonIpPackets'), sent.packets - sent.ipPackets);
    assert.equal(sum('parserDropped') + dropped, 0);
    // 40 tagged frames in each direction. The kernel removes the tag from incoming frames; outgoing frames still have
    // it.
    assert.deepEqual(tags, [
      [-1, 360],
      [77, 40],
    ]);
    const counters = [...nft(ns, 'list ruleset').matchAll(/counter packets (\d+) bytes (\d+)/g)];
    const [ingress, egress] = counters.map((match) => ({
      packets: Number(match[1]),
      bytes: Number(match[2]),
    }));
    // In: IP lengths alone. Out: with 14 bytes of Ethernet; that hook does not count tagged frames as IP.
    assert.equal(ingress!.bytes, sent.ipBytes / 2);
    assert.equal(egress!.bytes - 14 * egress!.packets, sent.ipBytes / 2 - 40 * 228);
  },
);

rootTest(
  'packets without room in the ring are counted as dropped, exactly, and the capture continues',
  (t) => {
    const { result } = inNamespace(t, 'overflow');
    const { sent, handed, dropped, droppedAgain, afterwards } = result as Record<string, number>;
    assert.ok(dropped! > 0, 'the ring must be too small for this test');
    assert.equal(handed! + dropped!, sent);
    assert.deepEqual([droppedAgain, afterwards], [0, 1]);
  },
);

rootTest('an interface that goes down and up is captured again; one that is removed is reported', (t) => {
  const { result } = inNamespace(t, 'gone');
  assert.deepEqual(result, { isHeardAgain: true, code: 'capture.interface_gone' });
});

rootTest(
  'threads capture on two interfaces, and an orderly stop reports the open minute with every packet',
  (t) => {
    const { result } = inNamespace(t, 'collect');
    const { sent, minutes, gaps } = result as {
      sent: Counted['sent'];
      minutes: {
        capture: string;
        role: string;
        observedMs: number;
        totals: Counted['totals'][number];
        hosts: { address: string }[];
      }[];
      gaps: { capture: string; reason: string }[];
    };
    for (const [name, role] of [
      ['va', 'uplink'],
      ['vb', 'bridge'],
    ]) {
      const mine = minutes.filter((one) => one.capture === name);
      assert.equal(
        mine.reduce((all, one) => all + one.totals.ipBytes, 0),
        sent.ipBytes,
        name,
      );
      assert.equal(
        mine.reduce((all, one) => all + one.totals.packets, 0),
        sent.packets,
        name,
      );
      assert.ok(mine.every((one) => one.role === role && one.observedMs > 0 && one.observedMs < 60_000));
      assert.ok(
        gaps.some((gap) => gap.capture === name && gap.reason === 'sensor_down'),
        'partial minutes are named',
      );
      const addresses = new Set(mine.flatMap((one) => one.hosts).map((host) => host.address));
      assert.ok(
        ['10.9.0.1', '10.9.0.2', '2001:db8::1'].every((address) => addresses.has(address)),
        [...addresses].join(),
      );
    }
  },
);

test('a missing interface and a missing capability are explained', (t) => {
  assert.throws(
    () => openLiveSource({ interfaceName: 'no-such-if0', ringMiB: 2 }),
    (error: Error & { code?: string }) =>
      error.code === 'capture.no_interface' && error.message.includes("name one that 'ip link' shows"),
  );
  const code = `import { uniqueName } from '#sensor/testing/link-names.ts';
import { openLiveSource } from ${JSON.stringify(new URL('./live-source.ts', import.meta.url).href)};
    try { openLiveSource({ interfaceName: 'lo', ringMiB: 2 }); console.log('opened'); }
    catch (error) { console.log(error.code, error.message); }`;
  const asOrdinaryUser = isRoot ? ['setpriv', '--bounding-set=-net_raw', '--inh-caps=-net_raw'] : [];
  const command = [
    ...asOrdinaryUser,
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    '--input-type=module',
    '-e',
    code,
  ];
  const said = spawnSync(command[0]!, command.slice(1), { encoding: 'utf8' });
  t.diagnostic(said.stdout.trim());
  assert.match(said.stdout, /^capture\.not_permitted .*CAP_NET_RAW/);
});
