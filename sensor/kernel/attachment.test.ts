/** The counting program at a real interface. Needs root. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ethernetFrame, openFrameSender, udp4, udp6 } from '#sensor/testing/frame-sender.ts';
import { uniqueName } from '#sensor/testing/link-names.ts';
import {
  attachCounter,
  countBriefly,
  detachCounter,
  openCounter,
  pinRoot,
  preparePins,
} from './attachment.ts';

const skip = process.getuid?.() === 0 ? false : 'needs root';
const hourNs = 3_600_000_000_000n;
const promiscuous = 0x100;
const local = { prefixes: ['192.0.2.0/24', '2001:db8::/64'], addresses: ['198.51.100.7'] };

/** Two ends of a wire without other traffic; the program is attached to the first. */
function attachedPair(t: TestContext): { here: string; there: string } {
  const [here, there] = [uniqueName(), uniqueName()];
  execFileSync('ip', ['link', 'add', here, 'type', 'veth', 'peer', 'name', there]);
  t.after(() => {
    detachCounter(here);
    spawnSync('ip', ['link', 'del', here]);
    // The pins of what is gone go with the next preparation.
    preparePins([], { uid: 0, gid: 0 });
  });
  for (const end of [here, there]) {
    spawnSync('sh', ['-c', `echo 1 > /proc/sys/net/ipv6/conf/${end}/disable_ipv6`]);
    execFileSync('ip', ['link', 'set', end, 'arp', 'off', 'up']);
  }
  preparePins([here], { uid: 0, gid: 0 });
  attachCounter(here);
  return { here, there };
}

function send(interfaceName: string, ...frames: Buffer[]): void {
  const sender = openFrameSender(interfaceName);
  for (const frame of frames) sender.send(frame);
  sender.close();
}

const thisMinute = () => Math.floor(Date.now() / 60_000) * 60;

/** Counters of this minute and the one before: a test may run across the turn. */
function readAll(counter: ReturnType<typeof openCounter>['counter']) {
  const minutes = [thisMinute() - 60, thisMinute()].map((minute) => counter.readMinute(minute));
  const sums = new Map<string, number[]>();
  for (const { hosts } of minutes)
    for (const [address, { rxBytes, txBytes, packets }] of hosts) {
      const known = sums.get(address) ?? [0, 0, 0];
      sums.set(address, [known[0]! + rxBytes, known[1]! + txBytes, known[2]! + packets]);
    }
  const packets = minutes.reduce((sum, { totals }) => sum + totals.packets, 0);
  return { packets, hosts: Object.fromEntries([...sums].sort()) };
}

test('the kernel loads the programs for a process that has CAP_BPF and CAP_NET_ADMIN alone', { skip }, () => {
  const program = fileURLToPath(new URL('../testing/load-kernel.ts', import.meta.url));
  const bounds = '--bounding-set=-all,+bpf,+net_admin';
  const { status, stderr } = spawnSync('setpriv', [bounds, process.execPath, program], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
});

test('NET-2.2.6: the kernel counts what an interface receives and sends by local address, tagged frames too', {
  skip,
}, (t) => {
  const { here, there } = attachedPair(t);
  const { counter, isAttached } = openCounter(here);
  counter.setLocal(local, false);
  assert.equal(isAttached(), true);
  send(
    there,
    ethernetFrame(0x0800, udp4('203.0.113.1', '192.0.2.1', 100)),
    ethernetFrame(0x0800, udp4('203.0.113.1', '192.0.2.1', 200), 7),
    ethernetFrame(0x86dd, udp6(1, 2, 50)),
    ethernetFrame(0x0806, Buffer.alloc(46)),
  );
  send(here, ethernetFrame(0x0800, udp4('198.51.100.7', '203.0.113.1', 300)));
  assert.deepEqual(readAll(counter), {
    packets: 5,
    hosts: {
      '192.0.2.1': [128 + 228, 0, 2],
      '198.51.100.7': [0, 328, 1],
      '2001:db8::1': [0, 98, 1],
      '2001:db8::2': [98, 0, 1],
    },
  });
  counter.close();
});

test('an address whose removal a killed sensor began leaves its place to others, and those that are local keep theirs', {
  skip,
}, (t) => {
  const { here } = attachedPair(t);
  const before = openCounter(here).counter;
  before.setLocal({ prefixes: [], addresses: ['198.51.100.7', '198.51.100.8'] }, false);
  const [first, second] = before.slots.taken();
  before.slots.remove(first!);
  before.close();
  const { counter } = openCounter(here);
  assert.deepEqual(counter.slots.taken(), [second]);
  counter.close();
});

/** A bridge with two servers' ports; the program is attached to it. Returns the servers' ends. */
async function attachedBridge(t: TestContext) {
  const bridge = uniqueName();
  const ports = [1, 2].map(() => ({ port: uniqueName(), server: uniqueName() }));
  const ip = (...line: string[]) => execFileSync('ip', ['link', ...line]);
  ip('add', bridge, 'type', 'bridge', 'mcast_snooping', '0');
  t.after(() => {
    detachCounter(bridge);
    for (const name of [bridge, ...ports.map(({ port }) => port)]) spawnSync('ip', ['link', 'del', name]);
    preparePins([], { uid: 0, gid: 0 });
  });
  for (const { port, server } of ports) ip('add', port, 'type', 'veth', 'peer', 'name', server);
  for (const name of [bridge, ...ports.flatMap(({ port, server }) => [port, server])]) {
    spawnSync('sh', ['-c', `echo 1 > /proc/sys/net/ipv6/conf/${name}/disable_ipv6`]);
    ip('set', name, 'arp', 'off', 'up');
  }
  for (const { port } of ports) ip('set', port, 'master', bridge);
  const forwards = () =>
    ports.every(({ port }) => readFileSync(`/sys/class/net/${port}/brport/state`, 'utf8').trim() === '3');
  while (!forwards()) await setImmediate();
  preparePins([bridge], { uid: 0, gid: 0 });
  attachCounter(bridge);
  return { bridge, servers: ports.map(({ server }) => server) as [string, string] };
}

test('NET-2.2.6: on a bridge the kernel counts what passes between ports, and what is spoofed, without a sensor that listens', {
  skip,
}, async (t) => {
  const { bridge, servers } = await attachedBridge(t);
  const { counter } = openCounter(bridge);
  const macs = ['02:00:00:00:00:01', '02:00:00:00:00:02'];
  const owners = macs.map((mac, i) => ({ address: `192.0.2.${i + 1}`, macs: [mac] }));
  counter.setLocal({ ...local, owners }, true);
  const frame = (from: number, to: number, source: string) => {
    const whole = ethernetFrame(0x0800, udp4(source, `192.0.2.${to}`, 100));
    whole.write(`02000000000${to}02000000000${from}`, 'hex');
    return whole;
  };
  // The bridge learns where the second one is.
  send(servers[1], frame(2, 1, '192.0.2.2'));
  send(servers[0], frame(1, 2, '192.0.2.1'), frame(1, 2, '192.0.2.2'));
  assert.deepEqual(readAll(counter).hosts, { '192.0.2.1': [128, 128, 2], '192.0.2.2': [256, 128, 3] });
  const spoofed = [thisMinute() - 60, thisMinute()].flatMap((minute) => counter.readMinute(minute).spoofed);
  assert.deepEqual(
    spoofed.map(({ low, address, reason, packets, bytes }) => [low, address, reason, packets, bytes]),
    [[1, '192.0.2.2', 'address', 1, 128]],
  );
  counter.close();
  const flags = () => Number(readFileSync(`/sys/class/net/${bridge}/flags`, 'utf8'));
  assert.equal(flags() & promiscuous, promiscuous);
  detachCounter(bridge);
  assert.equal(flags() & promiscuous, 0);
});

test('counters outlive who reads them and a program of another version, and nothing is left when they are taken off', {
  skip,
}, (t) => {
  const { here, there } = attachedPair(t);
  const frame = ethernetFrame(0x0800, udp4('203.0.113.1', '192.0.2.1', 100));
  const first = openCounter(here).counter;
  first.setLocal(local, false);
  send(there, frame);
  first.close();
  send(there, frame);
  attachCounter(here);
  send(there, frame);
  const { counter, isAttached } = openCounter(here);
  assert.deepEqual(readAll(counter).hosts, { '192.0.2.1': [3 * 128, 0, 3] });
  const brief = countBriefly(here, (counter) => counter.beat());
  send(there, frame);
  brief.end();
  assert.equal(readAll(brief.counter).packets, 1, 'a command counts beside the sensor');
  brief.counter.close();
  assert.equal(detachCounter(here), true);
  assert.equal(isAttached(), false);
  const shown = execFileSync('tc', ['qdisc', 'show', 'dev', here], { encoding: 'utf8' });
  assert.ok(!shown.includes('clsact'), shown);
  assert.throws(() => openCounter(here), /No counting program is attached/);
  counter.close();
});

test('the kernel stops counting an hour after the last sign of life of a sensor, and says since when minutes are whole', {
  skip,
}, (t) => {
  const { here, there } = attachedPair(t);
  const { counter } = openCounter(here);
  assert.equal(counter.wholeSinceMs(), Number.POSITIVE_INFINITY, 'no address is known yet');
  counter.setLocal(local, false);
  const sinceMs = counter.wholeSinceMs();
  assert.ok(Math.abs(sinceMs - Date.now()) < 10_000);
  const frame = ethernetFrame(0x0800, udp4('203.0.113.1', '192.0.2.1', 100));
  counter.change({ beat: process.hrtime.bigint() - hourNs - 1_000_000_000n });
  send(there, frame);
  assert.equal(readAll(counter).packets, 0);
  counter.beat();
  assert.ok(counter.wholeSinceMs() > sinceMs, 'it had ended in between');
  send(there, frame);
  assert.equal(readAll(counter).packets, 1);
  counter.close();
});

test('the counters of a network namespace that is gone are removed with the next start', { skip }, (t) => {
  attachedPair(t);
  // No namespace has this number.
  const gone = `${pinRoot}/1-1-v1`;
  mkdirSync(gone);
  preparePins([], { uid: 0, gid: 0 });
  assert.equal(existsSync(gone), false);
});

test('an address that is local no more is counted no more; one that stays keeps its counters', {
  skip,
}, (t) => {
  const { here, there } = attachedPair(t);
  const { counter } = openCounter(here);
  counter.setLocal(local, false);
  const frames = ['192.0.2.1', '198.51.100.7'].map((to) =>
    ethernetFrame(0x0800, udp4('203.0.113.1', to, 100)),
  );
  send(there, ...frames);
  counter.setLocal({ prefixes: [], addresses: ['198.51.100.7'] }, false);
  send(there, ...frames);
  assert.deepEqual(readAll(counter).hosts, { '198.51.100.7': [2 * 128, 0, 2] });
  counter.close();
});

test('beside a queueing discipline that has no room for it the program is refused in words', {
  skip,
}, (t) => {
  const { here } = attachedPair(t);
  detachCounter(here);
  execFileSync('tc', ['qdisc', 'add', 'dev', here, 'ingress']);
  assert.throws(() => attachCounter(here), /queueing discipline "ingress"/);
  assert.throws(() => openCounter(here), /No counting program/);
  assert.equal(existsSync(`/sys/class/net/${here}`), true);
});
