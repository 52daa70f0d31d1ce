// Slow: starts a libvirtd, and waits for connections that its filters refuse.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { captureLink } from '#lab/testing/capture-link.ts';
import { markedIn, markFrames, testFrames } from '#lab/testing/forged-frames.ts';
import { filterName } from '#operations/hypervisors/libvirt/domain-xml.ts';
import { createLibvirtDriver } from '#operations/hypervisors/libvirt/driver.ts';
import { defineNicFilters, removeFilters, switchGuards } from '#operations/hypervisors/libvirt/filters.ts';
import { createVirsh } from '#operations/hypervisors/libvirt/run-virsh.ts';
import { node } from '#operations/hypervisors/testing/example-guest.ts';
import { createLibvirtWorld, whyNoLibvirt } from '#operations/hypervisors/testing/libvirt-world.ts';
import { until } from '#service-kit/testing/until.ts';

const sendFramesFile = fileURLToPath(new URL('../lab/testing/send-frames.ts', import.meta.url));
const own = { mac: '52:54:00:00:00:11', ipv4: '203.0.113.11', ipv6: '2001:db8:113::11' };
const other = { mac: '52:54:00:00:00:12', ipv4: '203.0.113.12', ipv6: '2001:db8:113::12' };
const patientMs = 60_000;
const filter = filterName('vm-11', null);

/** What libvirt's filters do not see. */
const unseen = [
  'an IPv6 header with a length beyond the frame',
  'an advertisement of another’s address',
  'an advertisement of another’s address without a MAC',
  'an advertisement of the router’s address',
  'an advertisement that names another MAC',
  'a solicitation that names another MAC',
  'a router solicitation that names another MAC',
  'an advertisement with a second option',
  'an advertisement behind destination options',
  'a solicitation in a fragment',
  'a first fragment that ends before the message',
  'a first fragment that ends before the message, with another behind it',
  'a later fragment whose header says options',
  'an IPv4 router advertisement',
  'an IPv4 header with a length beyond the frame',
];

/** A port of the world's bridge, bound to the guest's filter as libvirt binds an interface, with its other end in a namespace. */
async function plug(t: TestContext, world: Awaited<ReturnType<typeof createLibvirtWorld>>) {
  const ip = (...line: string[]) => execFileSync('ip', line);
  const run = (...argv: string[]) => {
    const [tool, ...rest] = world.inside(argv);
    return execFileSync(tool!, rest, { encoding: 'utf8' });
  };
  const id = randomBytes(3).toString('hex');
  const ends = [
    { namespace: `svc-lv-${id}-guest`, port: 'svc11', mac: own.mac, addresses: [own.ipv4, own.ipv6] },
    { namespace: `svc-lv-${id}-peer`, port: 'peer', mac: other.mac, addresses: [other.ipv4, other.ipv6] },
  ] as const;
  for (const { namespace, port, mac, addresses } of ends) {
    ip('netns', 'add', namespace);
    t.after(() => ip('netns', 'delete', namespace));
    run(
      'ip',
      'link',
      'add',
      port,
      'type',
      'veth',
      'peer',
      'name',
      'eth0',
      'address',
      mac,
      'netns',
      namespace,
    );
    run('ip', 'link', 'set', port, 'master', 'br0', 'up');
    ip('-n', namespace, 'link', 'set', 'lo', 'up');
    ip('-n', namespace, 'link', 'set', 'eth0', 'up');
    for (const address of addresses)
      ip(
        '-n',
        namespace,
        'addr',
        'add',
        `${address}/${address.includes(':') ? '64' : '24'}`,
        'dev',
        'eth0',
        ...(address.includes(':') ? ['nodad'] : []),
      );
  }
  const [guest, peer] = ends.map(({ namespace }) => (argv: readonly string[]) => [
    'ip',
    'netns',
    'exec',
    namespace,
    ...argv,
  ]);
  return { guest: guest!, peer: peer! };
}

function bindingXml(): string {
  return `<filterbinding>
  <owner><name>vm-11</name><uuid>8c6d5a34-0000-4000-8000-000000000011</uuid></owner>
  <portdev name='svc11'/>
  <mac address='${own.mac}'/>
  <filterref filter='${filter}'/>
</filterbinding>`;
}

/** Answers each line on every port given. */
const echoScript = `for (const port of process.argv.slice(1)) require('node:net').createServer((s) => s.pipe(s).on('error', () => {})).listen(Number(port), '::');
console.log('listening');`;
/** Says whether a connection opens within a time. */
const connectScript = `const [host, port, ms] = process.argv.slice(1);
const end = (word) => { console.log(word); process.exit(); };
require('node:net').connect({ host, port: Number(port) }).on('connect', () => end('open')).on('error', () => end('closed'));
setTimeout(() => end('closed'), Number(ms));`;
/** Holds one connection; each line of input goes out and comes back. */
const holdScript = `const [host, port] = process.argv.slice(1);
const s = require('node:net').connect({ host, port: Number(port) });
process.stdin.pipe(s).pipe(process.stdout);`;

test('the filters of a guest of libvirt', { skip: whyNoLibvirt() }, async (t) => {
  await using world = await createLibvirtWorld();
  const folder = mkdtempSync(join(tmpdir(), 'svc-filters-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { guest, peer } = await plug(t, world);
  const virsh = createVirsh(world.uri);
  await defineNicFilters(virsh, filter, { mac: own.mac, addresses: [own.ipv4, own.ipv6] });
  const file = join(folder, 'binding.xml');
  writeFileSync(file, bindingXml());
  world.virsh('nwfilter-binding-create', file);
  const driver = createLibvirtDriver({ ...node, uri: world.uri });
  const run = (argv: readonly string[]) => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
  /** Whether bridges consult the rules of packets; then they cut off what follows a packet, by which frames are known again. */
  const consultRules = (isOn: boolean) =>
    run(
      world.inside([
        ...['sh', '-e', '-c'],
        `for kind in iptables ip6tables; do echo ${isOn ? 1 : 0} > /proc/sys/net/bridge/bridge-nf-call-$kind; done`,
      ]),
    );
  const start = (argv: readonly string[]) => {
    const child = spawn(argv[0]!, argv.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    return child;
  };

  await t.test('what is forged does not leave the port, and ordinary frames do', async (t2) => {
    consultRules(false);
    const frames = testFrames(own, other);
    const passed = async (name: string) => {
      const needle = randomBytes(12).toString('hex');
      const marked = markFrames(frames, needle);
      const at = join(folder, `${name}.pcap`);
      const options = {
        prefix: peer([]),
        interfaceName: 'eth0',
        file: at,
        filter: 'greater 0',
        isInbound: true,
      };
      const capture = await captureLink(t2, options);
      const list = join(folder, `${name}.hex`);
      writeFileSync(list, marked.map(({ bytes }) => Buffer.from(bytes).toString('hex')).join('\n'));
      run(guest([process.execPath, sendFramesFile, 'eth0', list]));
      // The last one is ordinary.
      await until(
        'the last frame arrives',
        patientMs,
        () => markedIn(at, marked, needle).includes(marked.at(-1)!) || null,
      );
      await capture.stop();
      return markedIn(at, marked, needle).map(({ kind }) => kind);
    };
    const ordinary = frames.filter(({ reason }) => reason === null).map(({ kind }) => kind);
    const forged = new Set(frames.filter(({ reason }) => reason !== null).map(({ kind }) => kind));
    const guarded = await passed('guarded');
    assert.deepEqual(
      guarded.filter((kind) => !forged.has(kind)),
      ordinary,
    );
    assert.deepEqual(
      guarded.filter((kind) => forged.has(kind)),
      unseen,
    );
    await switchGuards(virsh, 'vm-11', false);
    assert.ok((await passed('unguarded')).length > frames.length - 5);
    await switchGuards(virsh, 'vm-11', true);
    assert.deepEqual(
      (await passed('again')).filter((kind) => forged.has(kind)),
      unseen,
    );
  });

  await t.test(
    'API-4.9: the firewall lets in what its rules say in their order, and cuts no connection that stands',
    async () => {
      consultRules(true);
      const connect = (from: typeof guest, host: string, port: number, ms = 800) =>
        run(from([process.execPath, '-e', connectScript, host, String(port), String(ms)])).trim();
      for (const at of [guest, peer]) {
        const child = start(at([process.execPath, '-e', echoScript, '80', '443', '8443']));
        await once(child.stdout, 'data');
      }
      const both = (from: typeof guest, { ipv4, ipv6 }: typeof own, port: number, ms?: number) =>
        [ipv4, ipv6].map((host) => connect(from, host, port, ms)).join();
      assert.equal(both(peer, own, 80, patientMs), 'open,open');
      const open = { inboundPolicy: 'accept', outboundPolicy: 'accept', rules: [] } as const;
      // The first firewall of a node begins the tracking of connections.
      await driver.applyFirewall('vm-11', open);
      const held = start(peer([process.execPath, '-e', holdScript, own.ipv6, '80']));
      const isHeld = async () => {
        const line = randomBytes(12).toString('hex');
        held.stdin.write(`${line}\n`);
        const [echo] = (await once(held.stdout, 'data')) as [Buffer];
        return echo.toString() === `${line}\n`;
      };
      assert.ok(await isHeld());
      const rule = {
        direction: 'inbound' as const,
        action: 'accept' as const,
        protocol: 'tcp' as const,
        ports: null,
        peers: [],
      };
      await driver.applyFirewall('vm-11', {
        inboundPolicy: 'drop',
        outboundPolicy: 'accept',
        rules: [{ ...rule, ports: '443' }],
      });
      assert.equal(both(peer, own, 80), 'closed,closed');
      assert.equal(both(peer, own, 443, patientMs), 'open,open');
      assert.ok(await isHeld(), 'a connection that stood is not cut');
      assert.equal(both(guest, other, 80, patientMs), 'open,open', 'its own connections get their answers');
      await driver.applyFirewall('vm-11', {
        inboundPolicy: 'drop',
        outboundPolicy: 'accept',
        rules: [
          { ...rule, ports: '80', action: 'drop', peers: ['203.0.113.12/32'] },
          { ...rule, ports: '80-90' },
          { ...rule, protocol: 'icmp' },
          { ...rule, direction: 'outbound', action: 'drop', ports: '443', peers: ['203.0.113.0/24'] },
        ],
      });
      assert.equal(both(peer, own, 80), 'closed,open', 'the first rule that fits decides, by its peer');

      assert.equal(both(guest, other, 443), 'closed,open');
      await driver.applyFirewall('vm-11', null);
      assert.equal(both(peer, own, 80, patientMs), 'open,open');
      assert.ok(await isHeld());
    },
  );

  await t.test('filters end with their guest', async () => {
    world.virsh('nwfilter-binding-delete', 'svc11');
    await removeFilters(virsh, 'vm-11');
    assert.doesNotMatch(world.virsh('nwfilter-list'), /svc-vm/);
    await removeFilters(virsh, 'vm-11');
  });
});
