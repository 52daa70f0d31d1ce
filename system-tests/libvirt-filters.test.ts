// Slow: starts a libvirtd, and waits for connections that its filters refuse.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { captureLink } from '#lab/testing/capture-link.ts';
import { markedIn, markFrames, testFrames } from '#lab/testing/forged-frames.ts';
import { guardOrders, runGuardOrder } from '#lab/testing/guard-orders.ts';
import { createLibvirtDriver } from '#operations/hypervisors/libvirt/driver.ts';
import { removeFilters, switchGuards } from '#operations/hypervisors/libvirt/filters.ts';
import { checkGuardHook } from '#operations/hypervisors/libvirt/guard-table.ts';
import { createVirsh } from '#operations/hypervisors/libvirt/run-virsh.ts';
import { node } from '#operations/hypervisors/testing/example-guest.ts';
import { createLibvirtWorld, whyNoLibvirt } from '#operations/hypervisors/testing/libvirt-world.ts';
import { until } from '#service-kit/testing/until.ts';
import { other, own, plugLibvirtGuest } from './testing/libvirt-port.ts';

const sendFramesFile = fileURLToPath(new URL('../lab/testing/send-frames.ts', import.meta.url));
const patientMs = 60_000;

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
  await using world = await createLibvirtWorld({ hasGuardHook: true });
  const folder = mkdtempSync(join(tmpdir(), 'svc-filters-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const port = await plugLibvirtGuest(t, world, folder);
  const { inGuest: guest, inNeighbour: peer, consultRules } = port;
  const virsh = createVirsh(world.uri);
  const driver = createLibvirtDriver({ ...node, uri: world.uri });
  const run = (argv: readonly string[]) => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
  const start = (argv: readonly string[]) => {
    const child = spawn(argv[0]!, argv.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    return child;
  };

  await t.test('what is forged does not leave the port, and ordinary frames do', async (t2) => {
    assert.ok(await checkGuardHook(virsh));
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
      [],
    );
    await switchGuards(virsh, 'vm-11', false);
    assert.ok((await passed('unguarded')).length > frames.length - 5);
    await switchGuards(virsh, 'vm-11', true);
    assert.deepEqual(
      (await passed('again')).filter((kind) => forged.has(kind)),
      [],
    );
  });

  await t.test(
    'while a guest forges, its addresses come and go: an attached one may send, a released one not',
    async () => {
      const { judged, faults } = await runGuardOrder(port, guardOrders[0]!);
      assert.deepEqual(faults, []);
      assert.ok(judged > 1_000, `${judged}`);
      await port.setAddresses([own.ipv4, own.ipv6]);
    },
  );

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
    assert.doesNotMatch(world.virsh('nwfilter-list') + world.virsh('net-list', '--all'), /svc-vm/);
    assert.doesNotMatch(run(world.inside(['nft', 'list', 'table', 'bridge', 'svc_guard'])), /svc-vm/);
    await removeFilters(virsh, 'vm-11');
  });
});
