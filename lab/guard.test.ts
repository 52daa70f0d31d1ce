// Slow: sends some hundred kinds of frames through the guards of a lab, with each rule of them left out in turn.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { callControl } from './control/index.ts';
import type { Lab } from './index.ts';
import { captureLink } from './testing/capture-link.ts';
import { markedIn, markFrames, type TestFrame, testFrames } from './testing/forged-frames.ts';
import { guardOrders, runGuardOrder } from './testing/guard-orders.ts';
import { labPort, other, own, startPair } from './testing/lab-port.ts';
import { fetchSeven, makeDataDir, needsRoot, patientMs } from './testing/lab-tests.ts';
import { addressRecords } from './traffic/internet-plan.ts';
import { readCounters } from './truth/counters.ts';
import { nameGuestLink } from './world/name-world.ts';
import { links } from './world/networks.ts';

const sendFramesFile = fileURLToPath(new URL('./testing/send-frames.ts', import.meta.url));
const sendDatagramsFile = fileURLToPath(new URL('./testing/send-datagrams.ts', import.meta.url));
const link = nameGuestLink('vm-11');
const guardTable = `guard-${link}`;
/** Sends three datagrams from an address, whether it is its own or not. */
const sendFromScript = `const [address, target] = process.argv.slice(1);
const socket = require('node:dgram').createSocket(address.includes(':') ? 'udp6' : 'udp4');
socket.bind({ address, port: 0 }, async () => {
  for (let i = 0; i < 3; i += 1) await new Promise((done) => socket.send('hello', 9, target, done));
  socket.close();
});`;
/** No frame that a guest's system sends by itself. */
const lastType = '88b6';

/** Sends the frames from inside the guest, in this order, and returns when its port has had all of them. */
async function sendFrom(
  lab: Lab,
  dataDir: string,
  guest: string,
  device: string,
  frames: readonly TestFrame[],
) {
  const file = join(dataDir, 'frames.hex');
  writeFileSync(file, frames.map(({ bytes }) => Buffer.from(bytes).toString('hex')).join('\n'));
  const cpu = ['taskset', '-c', '0'];
  await lab.execInGuest(guest, [...cpu, process.execPath, sendFramesFile, device, file]);
}

/** Counts what the port gets before its guard, and what passes it. */
async function watchPort(
  lab: Lab,
): Promise<() => Promise<{ arrived: number; passed: number; last: number }>> {
  // To these MACs go the frames of the test alone: a guest's kernel sends to those of its neighbours, and IPv6 multicast.
  const skip =
    'ether daddr != { 02:00:00:00:00:fe, ff:ff:ff:ff:ff:ff, 01:80:c2:00:00:00, 01:80:c2:00:00:0e } return';
  const chain = (name: string, priority: number, rules: string) =>
    `chain ${name} { type filter hook ingress device "${link}" priority ${priority}; ${skip}; ${rules}; }`;
  await lab.execInHypervisor([
    'nft',
    `table netdev watch {
      counter final {
      }
      counter arrived {
      }
      counter passed {
      }
      ${chain('before', -400, `ether type 0x${lastType} counter name final drop; counter name arrived`)}
      ${chain('after', 400, 'counter name passed')}
    }`,
  ]);
  return async () => {
    const json = await lab.execInHypervisor(['nft', '-j', 'reset', 'counters', 'table', 'netdev', 'watch']);
    const { nftables } = JSON.parse(json) as { nftables: { counter?: { name: string; packets: number } }[] };
    const packets = (name: string) =>
      nftables.find(({ counter }) => counter?.name === name)!.counter!.packets;
    return { arrived: packets('arrived'), passed: packets('passed'), last: packets('final') };
  };
}

const sum = (counts: Record<string, number>) => Object.values(counts).reduce((total, one) => total + one, 0);
const present = (counts: object) =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));

async function readDropped(lab: Lab, guest = 'vm-11'): Promise<Record<string, number>> {
  const [reading] = (await lab.readGuards()).get(guest)!;
  return present(reading!.dropped);
}

test('the guard of a port', needsRoot, async (world) => {
  const dataDir = makeDataDir(world);
  const lab = await startPair(world, dataDir);
  const frames = testFrames(own, other);
  const forged = frames.filter(({ reason }) => reason !== null);
  const ordinary = frames.filter(({ reason }) => reason === null);
  const last: TestFrame = {
    kind: 'the last one',
    reason: null,
    bytes: Buffer.from(`0200000000fe${own.mac.replaceAll(':', '')}${lastType}${'00'.repeat(50)}`, 'hex'),
  };

  await world.test(
    'no forged frame leaves the port, each is counted by its reason, and ordinary ones pass',
    async (t) => {
      const at = (name: string) => join(dataDir, `${name}.pcap`);
      const capture = (name: string, prefix: string[], interfaceName: string) =>
        captureLink(t, { prefix, interfaceName, file: at(name), filter: 'greater 0', isInbound: false });
      const captures = [
        await capture('bridge', lab.inHypervisor([]), links.bridge),
        await capture('uplink', lab.inHypervisor([]), links.uplink),
        await capture('neighbour', lab.inGuest('vm-12', []), links.guest),
      ];
      const needle = randomBytes(12).toString('hex');
      const marked = markFrames(forged, needle);
      await sendFrom(lab, dataDir, 'vm-11', links.guest, marked);
      const wanted = Object.groupBy(forged, ({ reason }) => reason!);
      assert.deepEqual(
        await readDropped(lab),
        Object.fromEntries(Object.entries(wanted).map(([reason, list]) => [reason, list!.length])),
      );
      await lab.execInGuest('vm-11', fetchSeven(`http://${other.ipv4}`, patientMs));
      for (const one of captures) await one.stop();
      for (const name of ['bridge', 'uplink', 'neighbour'])
        assert.deepEqual(markedIn(at(name), marked, needle), [], `at the ${name}`);
      assert.ok(new Set(forged.map(({ kind }) => kind)).size >= 80);

      // Without the guard they arrive, so the captures would have shown them; a bridge keeps LLDP to itself.
      await lab.setGuard('vm-11', 'off');
      const again = await capture('unguarded', lab.inGuest('vm-12', []), links.guest);
      await sendFrom(lab, dataDir, 'vm-11', links.guest, marked);
      await lab.execInGuest('vm-11', fetchSeven(`http://${other.ipv4}`, patientMs));
      await again.stop();
      const missing = marked.filter((frame) => !markedIn(at('unguarded'), marked, needle).includes(frame));
      assert.deepEqual(
        missing.map(({ kind }) => kind),
        ['LLDP from another server’s MAC', 'LLDP'],
      );
      await lab.setGuard('vm-11', 'on');
    },
  );

  await world.test(
    'while a guest forges, its addresses come and go: an attached one may send, a released one not',
    async () => {
      const { judged, faults } = await runGuardOrder(labPort(lab, dataDir), guardOrders[0]!);
      assert.deepEqual(faults, []);
      assert.ok(judged > 1_000, `${judged}`);
      await lab.setAddresses('vm-11', [{ address: own.ipv4 }, { address: own.ipv6 }]);
    },
  );

  await world.test(
    'each rule of the guard is needed: without it something else passes, or is counted',
    async () => {
      const readWatch = await watchPort(lab);
      const nft = (line: string) =>
        lab.execInHypervisor(['nft', ...(line.startsWith('-') ? line.split(' ') : [line])]);
      const send = async () => {
        await readWatch();
        await sendFrom(lab, dataDir, 'vm-11', links.guest, [...frames, last]);
        const { last: arrivedLast, arrived, passed } = await readWatch();
        assert.deepEqual([arrivedLast, arrived], [1, frames.length]);
        return { passed, dropped: await readDropped(lab) };
      };
      const whole = await send();
      assert.equal(whole.passed, ordinary.length);
      assert.equal(sum(whole.dropped), forged.length);
      const listed = await nft(`-a list table netdev ${guardTable}`);
      let chain = '';
      const rules = listed.split('\n').flatMap((line) => {
        chain = /^\tchain (\S+)/.exec(line)?.[1] ?? chain;
        const [, text, handle] = /^\t\t(?!type filter)(.*) # handle (\d+)$/.exec(line) ?? [];
        return text === undefined ? [] : [{ chain, text, handle }];
      });
      const order = rules.map(({ chain: of, text }) => `${of}: ${text}`);
      assert.ok(order.length >= 40, `${order.length}`);
      const unneeded: string[] = [];
      for (const [i, rule] of order.entries()) {
        if (rule.includes('update @')) continue;
        await lab.setGuard('vm-11', 'on');
        const fresh = await nft(`-a list table netdev ${guardTable}`);
        const handle = [...fresh.matchAll(/^\t\t(?!type filter).* # handle (\d+)$/gm)][i]![1];
        await nft(`delete rule netdev ${guardTable} ${rule.split(':')[0]} handle ${handle}`);
        const holed = await send();
        if (holed.passed === whole.passed && JSON.stringify(holed.dropped) === JSON.stringify(whole.dropped))
          unneeded.push(rule);
      }
      assert.deepEqual(unneeded, []);
      await lab.execInHypervisor(['nft', 'delete table netdev watch']);
      await lab.setGuard('vm-11', 'on');
    },
  );

  await world.test(
    'a server that takes its neighbour’s address sends nothing, and the neighbour has no byte of it',
    async () => {
      const site = addressRecords.get('time.example.org')!;
      await lab.setGuard('vm-11', 'on');
      const run = (...line: string[]) => lab.execInGuest('vm-11', line);
      await run('ip', 'addr', 'add', `${other.ipv4}/32`, 'dev', links.guest);
      await run('ip', '-6', 'addr', 'add', `${other.ipv6}/128`, 'dev', links.guest, 'nodad');
      const before = await readCounters(lab.inHypervisor([]));
      const own4 = before.get(own.ipv4)!.txPackets;
      for (const [target, source] of [
        [site.ipv4, other.ipv4],
        [site.ipv6, other.ipv6],
      ] as const)
        await run(process.execPath, '-e', sendFromScript, source, target);
      const counts = await readCounters(lab.inHypervisor([]));
      for (const address of [other.ipv4, other.ipv6])
        assert.equal(counts.get(address)!.txPackets, before.get(address)!.txPackets, address);
      const reading = (await lab.readGuards()).get('vm-11')![0]!;
      assert.equal(reading.dropped.address, 6);
      assert.deepEqual(
        reading.claimed.map(({ reason, source, packets }) => [reason, source, packets]).toSorted(),
        [
          ['address', other.ipv6, 3],
          ['address', other.ipv4, 3],
        ].toSorted(),
      );
      assert.ok(reading.claimed.every(({ secondsAgo }) => secondsAgo >= 0 && secondsAgo < 60));
      assert.equal(await run(process.execPath, sendDatagramsFile, site.ipv4, '5', '100'), '5');
      assert.equal((await readCounters(lab.inHypervisor([]))).get(own.ipv4)!.txPackets, own4 + 5);
    },
  );

  await world.test(
    'operators switch it off and on over the control socket; it outlives the guest’s power',
    async () => {
      const put = async (name: string, body: object) =>
        (await callControl(lab.facts.control_socket, 'PUT', `/guests/${name}/guard`, body)).status;
      const listed = async () => {
        const { body } = await callControl(lab.facts.control_socket, 'GET', '/guests');
        const { guests } = body as { guests: { name: string; guard: string; guarded: object[] }[] };
        const { guard, guarded } = guests.find(({ name }) => name === 'vm-11')!;
        return { guard, interfaces: guarded.length };
      };
      const some = forged.filter(({ kind }) => kind === 'UDP from another server’s IPv4');
      const readWatch = await watchPort(lab);
      const passedOf = async () => {
        await readWatch();
        await sendFrom(lab, dataDir, 'vm-11', links.guest, [...some, last]);
        return (await readWatch()).passed;
      };
      assert.equal(await put('vm-11', { state: 'off' }), 200);
      assert.deepEqual(await listed(), { guard: 'off', interfaces: 0 });
      assert.equal(await passedOf(), 1);
      await lab.execInHypervisor(['nft', 'delete table netdev watch']);
      await lab.restart('vm-11');
      assert.deepEqual(await listed(), { guard: 'off', interfaces: 0 });
      assert.equal(await put('vm-11', { state: 'on' }), 200);
      assert.deepEqual(await listed(), { guard: 'on', interfaces: 1 });
      assert.equal(await put('vm-11', { state: 'maybe' }), 400);
      assert.equal(await put('vm-99', { state: 'on' }), 404);
    },
  );
});
