// Slow: sends attacks of every class for a second each, and judges each packet.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hasCode } from '#common/errors/index.ts';
import { parseAddress, prefixContains } from '#common/ip/index.ts';
import { type AttackClass, type AttackOrder, attackClasses, sourcesOf } from './attack/attack-order.ts';
import type { AttackMessage } from './attack/attack-process.ts';
import { runAttack } from './attack/index.ts';
import { reflectors } from './attack/packet-shapes.ts';
import { segmentBytes } from './attack/uploads.ts';
import type { GuestInput, Lab } from './index.ts';
import { captureLink } from './testing/capture-link.ts';
import { detectCaptured } from './testing/detect-captured.ts';
import { makeDataDir, needsRoot, startLab } from './testing/lab-tests.ts';
import type { SeenPacket } from './testing/seen-packets.ts';
import { runTool } from './world/run-tool.ts';

const targets = ['203.0.113.17', '2001:db8:113::17'] as const;
const guest: GuestInput = {
  name: 'vm-17',
  mac: '52:54:00:5e:00:11',
  addresses: targets.map((address) => ({ address })),
  nics: [{ network: 31, mac: '52:56:00:00:31:01', address: '10.20.0.5', prefixLength: 24 }],
};
const neighbour: GuestInput = {
  name: 'vm-18',
  mac: '52:54:00:5e:00:12',
  addresses: [{ address: '203.0.113.18' }],
};
const tcp = 6;
const udp = 17;
const never = new AbortController().signal;

function orderOf(target: string, attackClass: AttackClass, more: Partial<AttackOrder> = {}): AttackOrder {
  return { target, attackClass, perSecond: 400, seconds: 1, from: null, ...more };
}

/** Starts an attack that would last ten minutes; resolves when its packets flow. */
async function startLong(dataDir: string, order: AttackOrder, signal = never) {
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const over = runAttack({ dataDir, order: { ...order, seconds: 600 }, signal, told: () => resolve() });
  await Promise.race([begun, over]);
  return { over };
}

const isRefused = (code: string, pattern: RegExp) => (error: unknown) =>
  hasCode(error, code) && pattern.test((error as Error).message);

/** What only packets of this class are; connections are judged as a whole. */
const marks: Record<
  Exclude<AttackClass, 'connection_flood' | 'high_volume'>,
  (packet: SeenPacket) => boolean
> = {
  syn_flood: (packet) => packet.protocol === tcp && packet.tcpFlags === 2 && packet.targetPort === 443,
  synack_reflection: (packet) =>
    packet.protocol === tcp && packet.tcpFlags === 18 && packet.sourcePort === 443,
  ack_flood: (packet) => packet.protocol === tcp && packet.tcpFlags === 16,
  rst_flood: (packet) => packet.protocol === tcp && packet.tcpFlags === 4,
  udp_flood: (packet) =>
    packet.protocol === udp && reflectors.every((reflector) => reflector.port !== packet.sourcePort),
  icmp_flood: (packet) =>
    packet.version === 4
      ? packet.protocol === 1 && packet.type === 8
      : packet.protocol === 58 && packet.type === 128,
  protocol_flood: (packet) => packet.protocol === 47,
  amplification: (packet) =>
    packet.protocol === udp && reflectors.some((reflector) => reflector.port === packet.sourcePort),
  fragment_flood: (packet) => packet.protocol === udp && packet.isFragment,
};

/** Packets that decide a class: a busy machine sends fewer in a second than it is asked for. */
const judgedMin = 200;

/** Attacks for a second, and again until enough was sent. */
async function attackAgain(dataDir: string, order: AttackOrder): Promise<{ sent: number; runs: number }> {
  const all = { sent: 0, runs: 0 };
  while (all.sent < judgedMin) {
    const { sent, end } = await runAttack({ dataDir, order, signal: never });
    assert.equal(end, 'over');
    assert.ok(sent > 0 && sent <= 400, `${sent} packets sent`);
    all.sent += sent;
    all.runs += 1;
  }
  return all;
}

/** What a class needs beside its single packets. */
const wholes: Partial<Record<AttackClass, (packets: SeenPacket[], sent: number) => void>> = {
  amplification(packets) {
    const bytes = (of: SeenPacket[]) => of.reduce((sum, packet) => sum + packet.ipLength, 0);
    assert.ok(bytes(packets.filter((packet) => packet.sourcePort === 53)) * 2 > bytes(packets));
    assert.ok(bytes(packets) / packets.length > 200, 'answers are large');
  },
  fragment_flood(packets) {
    assert.ok(packets.filter((packet) => packet.fragmentOffset > 0).length > packets.length * 0.6);
  },
  connection_flood(packets, sent) {
    const openings = packets.filter((packet) => packet.tcpFlags === 2);
    assert.equal(endsOf(packets).size, sent);
    assert.ok(packets.some((packet) => packet.tcpFlags === 16 && packet.targetPort === 80));
    assert.ok(new Set(openings.map((packet) => packet.source)).size > 50, 'from many sources');
  },
  high_volume(packets, sent) {
    const sources = new Set(packets.map((packet) => packet.source));
    assert.ok(sources.size <= 3, `${sources.size} sources`);
    const opened = new Set(packets.filter((packet) => packet.tcpFlags === 2).map((packet) => packet.source));
    assert.deepEqual(opened, sources, 'each connection was established');
    const data = packets.filter((packet) => packet.dataBytes > 0);
    const positions = new Map(
      data.map((packet) => [`${packet.source} ${packet.sourcePort} ${packet.sequence}`, packet.dataBytes]),
    );
    const bytes = [...positions.values()].reduce((sum, each) => sum + each, 0);
    assert.ok(bytes <= sent * segmentBytes && bytes > (sent * segmentBytes) / 2, `${bytes} bytes of data`);
  },
};

test('lab attack: real packets reach a guest', needsRoot, async (t) => {
  const dataDir = makeDataDir(t);
  const lab = await startLab(t, { dataDir });
  await lab.put(guest);
  // The guest would send its answers to one flood again during the next.
  await runTool(lab.inGuest(guest.name, ['sh', '-c', 'echo 0 >/proc/sys/net/ipv4/tcp_synack_retries']));
  for (const attackClass of attackClasses) {
    await t.test(
      `${attackClass}, by IPv4 and IPv6: each packet that was sent arrives, and the sensor detects that class`,
      (each) => judgeClass(each, lab, dataDir, attackClass),
    );
  }
  await t.test('with checksums that its system finds right', async () => {
    const counts = await lab.execInGuest(guest.name, ['cat', '/proc/net/snmp', '/proc/net/snmp6']);
    assert.deepEqual(wrongSums(counts), []);
    assert.match(counts, /Ip6ReasmOKs\s+[1-9]/, 'fragments were put together');
  });
});

/** Openings, each once: one that is sent again has the same sequence number. */
const endsOf = (packets: SeenPacket[]) =>
  new Set(
    packets
      .filter((packet) => packet.tcpFlags === 2)
      .map((packet) => `${packet.source} ${packet.sourcePort} ${packet.sequence}`),
  );

/** True when everything that was sent has arrived. */
function isComplete(
  packets: SeenPacket[],
  attackClass: AttackClass,
  { sent, runs }: { sent: number; runs: number },
): boolean {
  if (attackClass === 'connection_flood') return endsOf(packets).size >= sent;
  if (attackClass !== 'high_volume') return packets.length >= sent;
  // Each connection ends, by FIN or RST, behind its data.
  const ended = packets.filter((packet) => packet.tcpFlags & 5);
  return new Set(ended.map((packet) => `${packet.source} ${packet.sourcePort}`)).size >= 3 * runs;
}

async function judgeClass(t: TestContext, lab: Lab, dataDir: string, attackClass: AttackClass) {
  const file = join(dataDir, `${attackClass}.pcap`);
  const prefix = lab.inGuest(guest.name, []);
  const capture = await captureLink(t, { prefix, interfaceName: 'eth0', file, isInbound: false });
  const results = await Promise.all(
    targets.map((target) => attackAgain(dataDir, orderOf(target, attackClass))),
  );
  for (const [i, target] of targets.entries()) {
    const { sent } = results[i]!;
    const own = (seen: SeenPacket[]) => seen.filter((packet) => packet.target === target);
    const isEnough = (seen: SeenPacket[]) => isComplete(own(seen), attackClass, results[i]!);
    const packets = own(await capture.readUntil(`${sent} packets to ${target}`, isEnough));
    if (attackClass in marks) {
      const mark = marks[attackClass as keyof typeof marks];
      assert.deepEqual(packets.filter((packet) => !mark(packet)).slice(0, 3), [], 'all are of the class');
      assert.equal(packets.length, sent);
    }
    wholes[attackClass]?.(packets, sent);
    const allowed = sourcesOf(attackClass, target);
    assert.ok(packets.every((packet) => prefixContains(allowed, parseAddress(packet.source)!)));
  }
  await capture.stop();
  const severity = attackClass === 'high_volume' ? 'info' : 'attack';
  assert.deepEqual(
    await detectCaptured(file, targets),
    targets.map((target) => `${target} inbound ${attackClass} ${severity}`).toSorted(),
  );
}

/** Counters of wrong checksums that are not zero. */
function wrongSums(counts: string): string[] {
  const lines = counts.split('\n');
  const pairs = lines.flatMap((line, i) => {
    const [name, ...values] = line.split(/\s+/);
    const isTable = name!.endsWith(':') && lines[i - 1]?.startsWith(name!) && /^-?\d/.test(values[0] ?? '');
    if (!isTable) return name!.endsWith('InCsumErrors') ? [[name!, values[0]!]] : [];
    const names = lines[i - 1]!.split(/\s+/).slice(1);
    return names.map((each, at) => [`${name}${each}`, values[at]!]);
  });
  const sums = pairs.filter(([name]) => name!.endsWith('InCsumErrors'));
  assert.ok(sums.length >= 4, 'there are such counters');
  return sums.filter(([, value]) => value !== '0').map((pair) => pair.join(' '));
}

test('lab attack: what an attack can’t do', needsRoot, async (t) => {
  const dataDir = makeDataDir(t);
  const lab = await startLab(t, { dataDir });
  await lab.put(guest);
  await lab.put(neighbour);

  await t.test(
    'it shows on the uplink and at its target, and on no interface outside of the lab',
    async (each) => {
      const from = '198.18.77.77';
      const capture = (name: string, prefix: readonly string[], interfaceName: string, isInbound = false) => {
        const file = join(dataDir, `${name}.pcap`);
        return captureLink(each, { prefix, interfaceName, file, filter: `host ${from}`, isInbound });
      };
      const uplink = await capture('uplink', lab.inHypervisor([]), 'uplink0', true);
      const quiet = [
        await capture('management', lab.inHypervisor([]), 'mgmt0'),
        await capture('neighbour', lab.inGuest(neighbour.name, []), 'eth0'),
        await capture('private', lab.inGuest(guest.name, []), 'pn31'),
        // All interfaces of the machine's own namespace.
        await capture('outside', [], 'any'),
      ];
      const { sent } = await runAttack({
        dataDir,
        order: orderOf(targets[0], 'syn_flood', { from }),
        signal: never,
      });
      const seen = await uplink.readUntil(`${sent} packets`, (packets) => packets.length >= sent);
      assert.equal(seen.length, sent);
      for (const link of quiet) assert.deepEqual(link.read(), []);
    },
  );

  await t.test('it refuses every address that is not a guest’s public one', async () => {
    const attack = (target: string) =>
      runAttack({ dataDir, order: orderOf(target, 'udp_flood'), signal: never });
    const { host_address: host, hypervisor_address: hypervisor } = lab.facts;
    const others = [
      '192.0.2.1',
      '8.8.8.8',
      '127.0.0.1',
      '::1',
      '203.0.113.1',
      '198.51.100.53',
      host,
      hypervisor,
    ];
    for (const other of others) {
      const pattern = /is not an address of a guest of this lab\. Allowed targets: 203\.0\.113\.17, /;
      await assert.rejects(attack(other), isRefused('lab.attack_refused', pattern), other);
    }
    await assert.rejects(attack('10.20.0.5'), isRefused('lab.attack_refused', /on a private network/));
    await lab.setPower(neighbour.name, 'off');
    await assert.rejects(attack('203.0.113.18'), isRefused('lab.attack_refused', /"vm-18" .* is off/));
    const noLab = runAttack({
      dataDir: makeDataDir(t),
      order: orderOf(targets[0], 'udp_flood'),
      signal: never,
    });
    await assert.rejects(noLab, isRefused('lab.not_up', /svc lab up/));
  });

  await t.test('its process sends nothing outside of the lab’s internet', async () => {
    const file = fileURLToPath(new URL('./attack/attack-process.ts', import.meta.url));
    const input = { order: orderOf(targets[0], 'syn_flood'), namespace: lab.facts.internet_namespace };
    const child = fork(file, [JSON.stringify(input)], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    const [message] = (await once(child, 'message')) as [AttackMessage];
    assert.equal(message.kind === 'failed' && message.code, 'lab.attack_failed');
    assert.match(JSON.stringify(message), /This process is not in svc-\w+-net/);
  });

  await t.test('a second one on its target is refused, and one on another address is not', async () => {
    const stopping = new AbortController();
    const first = await startLong(dataDir, orderOf(targets[0], 'icmp_flood'), stopping.signal);
    const second = runAttack({ dataDir, order: orderOf(targets[0], 'udp_flood'), signal: never });
    await assert.rejects(second, isRefused('lab.attack_running', /203\.0\.113\.17 is under way/));
    const other = await runAttack({ dataDir, order: orderOf(targets[1], 'udp_flood'), signal: never });
    assert.equal(other.end, 'over');
    stopping.abort();
    const result = await first.over;
    assert.equal(result.end, 'stopped');
    assert.ok(result.elapsedMs < 600_000);
    // The target is free again.
    const third = await runAttack({ dataDir, order: orderOf(targets[0], 'udp_flood'), signal: never });
    assert.equal(third.end, 'over');
  });

  await t.test('it ends with its guest, and with the lab', async () => {
    const first = await startLong(dataDir, orderOf(targets[0], 'udp_flood'));
    await lab.setPower(guest.name, 'off');
    assert.equal((await first.over).end, 'lost');
    await lab.setPower(guest.name, 'on');
    const second = await startLong(dataDir, orderOf(targets[0], 'connection_flood'));
    await lab.stop();
    assert.equal((await second.over).end, 'lost');
    assert.equal(
      await runTool(['ip', 'netns', 'list']).then((text) => text.includes(lab.facts.world)),
      false,
    );
  });
});
