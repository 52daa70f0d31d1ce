// Slow: Linux guests boot in software.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { after, before, type TestContext, test } from 'node:test';
import { until } from '#service-kit/testing/until.ts';
import type { FilterPlan, GuestProgress } from '../guest.ts';
import { guest, node } from '../testing/example-guest.ts';
import { createLibvirtWorld, type LibvirtWorld, whyNoLibvirt } from '../testing/libvirt-world.ts';
import { findBusybox, type LinuxFacts, writeLinuxImage } from '../testing/linux-image.ts';
import { createLibvirtDriver } from './driver.ts';

const skip = whyNoLibvirt();
let world: LibvirtWorld;
before(async () => {
  if (skip === false) world = await createLibvirtWorld();
});
after(() => world?.[Symbol.asyncDispose]());

/** A boot takes 11 s of a processor, of which this test may have a small part. */
const patientMs = 600_000;
const allowPorts = (ports: string): FilterPlan => ({
  ...{ inboundPolicy: 'drop', outboundPolicy: 'accept' },
  rules: [{ direction: 'inbound', action: 'accept', protocol: 'tcp', ports, peers: [] }],
});
const webOnly = allowPorts('80');
/** Of another server. */
const forged = { ipv4: '203.0.113.18', ipv6: '2001:db8:113::18' };

test('a Linux guest has the addresses, firewall and guard that were sold, over power cycle, resize, restore and rebuild', {
  skip,
}, async (t) => {
  for (const image of ['linux', 'other-linux'])
    writeLinuxImage(join(world.poolFolder, `${image}.qcow2`), image);
  world.virsh('pool-refresh', 'guests');
  const call = (program: string, ...args: string[]) =>
    execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  // Beside the node: libvirt's firewalls do not filter what the node itself sends to its guests.
  const outside = `svc-lv-${randomBytes(3).toString('hex')}`;
  call('ip', 'netns', 'add', outside);
  t.after(() => call('ip', 'netns', 'delete', outside));
  const onNode = (...argv: string[]) => call(...(world.inside(argv) as [string, ...string[]]));
  const peer = ['peer', 'name', 'eth0', 'netns', outside];
  onNode('ip', 'link', 'add', 'outside', 'type', 'veth', ...peer);
  onNode('ip', 'link', 'set', 'outside', 'master', 'br0', 'up');
  call('ip', '-n', outside, 'link', 'set', 'eth0', 'up');
  for (const address of ['203.0.113.1/24', '2001:db8:113::1/64'])
    call('ip', '-n', outside, 'address', 'add', address, 'dev', 'eth0', 'nodad');
  const run = (...argv: string[]) => call('ip', 'netns', 'exec', outside, ...argv);
  const linux = { ...guest, imageSlug: 'linux', memoryMb: 96, hostname: 'web-kq4' };
  const [ipv4, ipv6] = linux.addresses.map((one) => one.address) as [string, string];
  const driver = createLibvirtDriver({ ...node, uri: world.uri }, { connect: world.connect });
  const noStep = async () => {};
  const ask = (url: string, ...options: string[]) =>
    run('curl', '-sS', '--fail', '--max-time', '20', '--globoff', ...options, `http://${url}`);
  const describe = () =>
    until('the guest answers', patientMs, () => JSON.parse(ask(`${ipv4}/cgi-bin/describe`)) as LinuxFacts);
  const runInGuest = (script: string) => ask(`${ipv4}/cgi-bin/run`, '--data-binary', script);
  const pings = (address: string) => {
    try {
      run(findBusybox(), 'ping', '-c', '1', '-W', '1', address);
      return true;
    } catch {
      return false;
    }
  };
  // Each question to the driver is several of virsh, which take a processor from what boots.
  const untilReady = async (make: () => Promise<GuestProgress>) => {
    if ((await make()) === 'ready') return;
    await describe();
    assert.equal(await make(), 'ready');
  };

  await untilReady(() => driver.ensureGuest(linux, noStep));
  const { memoryMb, boot, ...first } = await describe();
  assert.deepEqual(first, { image: 'linux', hostname: 'web-kq4', vcpus: 1, diskGb: 1 });
  for (const address of [ipv4, ipv6]) await until(`${address} answers`, patientMs, () => pings(address));
  assert.equal(JSON.parse(ask(`[${ipv6}]/cgi-bin/describe`)).boot, boot);

  // Behind the guard: libvirt's chains are earlier ones of the bridge.
  onNode(
    'nft',
    `table bridge watch {
      counter own { }
      counter forged { }
      chain passed {
        type filter hook prerouting priority 0;
        ip saddr ${ipv4} ip daddr 203.0.113.1 counter name own
        ip saddr ${forged.ipv4} counter name forged
        ip6 saddr ${forged.ipv6} counter name forged
        arp saddr ip ${forged.ipv4} counter name forged
      }
    }`,
  );
  const countPassed = (counter: 'own' | 'forged') =>
    Number(/packets (\d+)/.exec(onNode('nft', 'list', 'counter', 'bridge', 'watch', counter))![1]);
  const forge = `ip addr add ${forged.ipv4}/32 dev eth0; ip addr add ${forged.ipv6}/128 dev eth0
    arping -U -c 1 -I eth0 ${forged.ipv4}
    ping -c 1 -W 1 -I ${forged.ipv4} 203.0.113.1; ping6 -c 1 -W 1 -I ${forged.ipv6} 2001:db8:113::1
    ip addr del ${forged.ipv4}/32 dev eth0; ip addr del ${forged.ipv6}/128 dev eth0`;
  const before = countPassed('own');
  assert.match(runInGuest(forge), /100% packet loss/);
  assert.equal(countPassed('forged'), 0);
  assert.ok(countPassed('own') > before);
  await driver.applyGuard(linux.name, false);
  runInGuest(forge);
  assert.ok(countPassed('forged') > 0, 'without its guard the same packets leave the guest');
  await driver.applyGuard(linux.name, true);

  // The first firewall of a node begins to track connections.
  await driver.applyFirewall(linux.name, allowPorts('7-80'));
  const echo = spawn('ip', ['netns', 'exec', outside, findBusybox(), 'nc', ipv4, '7'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  t.after(() => echo.kill());
  const say = async (word: string) => {
    echo.stdin.write(word);
    assert.equal(String((await once(echo.stdout, 'data', { signal: AbortSignal.timeout(20_000) }))[0]), word);
  };
  await say('before');
  await driver.applyFirewall(linux.name, webOnly);
  assert.deepEqual([pings(ipv4), pings(ipv6)], [false, false]);
  assert.equal((await describe()).boot, boot);
  await say('still');
  echo.stdin.end();
  await driver.applyFirewall(linux.name, null);
  assert.deepEqual([pings(ipv4), pings(ipv6)], [true, true]);
  await driver.applyFirewall(linux.name, webOnly);

  await useTerminal(t, () => driver.openConsole(linux.name, 'text'), runInGuest);
  await joinNetworks(t, linux.name, runInGuest);

  // Before what boots: the sector is of no file.
  const sector = '/dev/vda bs=512 seek=1000 count=1 conv=notrunc,fsync';
  const note = (word: string) => runInGuest(`printf ${word} | dd of=${sector} 2>/dev/null; sync`);
  const noted = (disk = '/dev/vda') =>
    runInGuest(`dd if=${disk} bs=512 skip=1000 count=1 2>/dev/null | head -c 6`).trim();
  note('before');
  await until('the copy is complete', patientMs, async () => {
    const copy = await driver.createSnapshot(linux.name, 21);
    return 'bytes' in copy && copy.bytes > 0;
  });
  note('after_');
  assert.deepEqual([noted(), (await describe()).boot], ['after_', boot], 'the guest goes on');
  // What an emulator that died leaves behind.
  world.virsh('vol-create-as', 'guests', `${linux.name}-s22.qcow2`, '2G', '--format', 'qcow2');
  world.virsh('domjobinfo', linux.name, '--completed');
  await assert.rejects(driver.createSnapshot(linux.name, 22), /broke off/);
  assert.equal(await driver.deleteSnapshot(linux.name, 22), true);

  const changed = { ...linux, rootPassword: randomBytes(12).toString('hex') };
  assert.equal(await driver.setRootPassword(changed, 41), 'next_boot');
  /** The hash of the changed password, where root in the guest has that one. */
  const findHash = () => {
    const [, salt, hash] = /^root:\$6\$([^$]+)\$([^:]+):/m.exec(runInGuest('cat /etc/shadow')) ?? [];
    const isIts =
      hash !== undefined &&
      call('openssl', 'passwd', '-6', '-salt', salt!, changed.rootPassword).includes(hash);
    return isIts ? hash : null;
  };
  assert.equal(findHash(), null);
  await driver.setPower(linux.name, 'off');
  await driver.resizeGuest(linux.name, { vcpus: 2, memoryMb: 160, diskGb: 2 });
  await driver.restoreSnapshot(linux.name, 21, 1);
  await driver.setPower(linux.name, 'on');
  const resized = await describe();
  assert.ok(resized.boot !== boot && resized.memoryMb >= memoryMb + 60, JSON.stringify(resized));
  assert.deepEqual([resized.vcpus, resized.diskGb, noted()], [2, 2, 'before']);
  assert.deepEqual([pings(ipv4), pings(ipv6)], [false, false], 'the firewall stands');
  assert.equal(await driver.deleteSnapshot(linux.name, 21), false, 'the disk needs it');
  const hash = findHash();
  assert.ok(hash !== null, 'root has the changed password since the boot');
  const nodeKnows = async () =>
    (await readFile(join(world.poolFolder, `${linux.name}-seed.iso`), 'latin1')).includes(hash);
  assert.equal(await nodeKnows(), true);
  await driver.forgetRootPassword(changed);
  assert.equal(await nodeKnows(), false);

  await untilReady(() =>
    driver.rescueGuest({ ...linux, imageSlug: 'other-linux', hostname: 'rescue' }, 1, noStep),
  );
  const rescue = await describe();
  assert.deepEqual([rescue.image, rescue.hostname], ['other-linux', 'rescue']);
  assert.equal(noted('/dev/vdc'), 'before', 'its own disk is there');
  assert.deepEqual([pings(ipv4), pings(ipv6)], [false, false]);
  await driver.endRescue(linux.name, 2);

  const rebuilt = { ...linux, imageSlug: 'other-linux', hostname: 'other-web' };
  await untilReady(() => driver.rebuildGuest(rebuilt, 2, noStep));
  assert.equal(await driver.deleteSnapshot(linux.name, 21), true);
  const other = await describe();
  assert.deepEqual([other.image, other.hostname, other.vcpus], ['other-linux', 'other-web', 2]);
  assert.deepEqual([pings(ipv4), pings(ipv6)], [false, false]);
  const passed = countPassed('forged');
  runInGuest(forge);
  assert.equal(countPassed('forged'), passed, 'the guard stands');
  await driver.ensureGone(linux.name);
});

/**
 * Private networks of the guest `name` reach what is on the provider's VLAN behind their bridge, and nothing else does. That
 * guests of two nodes meet on them is shown by `npm run prove -- private-networks`.
 */
/** The serial port as a terminal: what the guest says and what is typed, control characters too. */
async function useTerminal(
  t: TestContext,
  open: () => Promise<Duplex>,
  runInGuest: (script: string) => string,
) {
  const first = await open();
  const ended = new Promise((done) => first.resume().once('close', done));
  const terminal = await open();
  t.after(() => terminal.destroy());
  await ended;
  let said = '';
  terminal.on('data', (piece: Buffer) => {
    said += piece;
  });
  runInGuest('echo kR7wq2Vn9tYbXc4M > /dev/ttyS0');
  const broken = new Promise<never>((_, fail) => terminal.once('error', () => fail(new Error(said))));
  await Promise.race([
    broken,
    until('the guest is heard', patientMs, () => said.includes('kR7wq2Vn9tYbXc4M')),
  ]);
  broken.catch(() => {});
  assert.equal(said.includes('Escape character'), false);
  runInGuest('head -n 1 < /dev/ttyS0 > /www/typed 2> /dev/null &');
  await until('what is typed arrives', patientMs, () => {
    terminal.write('\x03H4zt8Fw1pLs6Jd0Q\n');
    return runInGuest('cat /www/typed').includes('H4zt8Fw1pLs6Jd0Q');
  });
}

async function joinNetworks(
  t: TestContext,
  name: string,
  runInGuest: (script: string) => string,
): Promise<void> {
  const driver = createLibvirtDriver({ ...node, uri: world.uri, networkBridges: 'brpn{131-132}' });
  const run = (...argv: string[]) => {
    const [program, ...args] = world.inside(argv);
    return execFileSync(program!, args, { encoding: 'utf8' });
  };
  const ip = (...argv: string[]) => execFileSync('ip', argv);
  const nic = (segment: number, last: number) => ({
    ...{ networkId: segment - 100, segment, prefixLength: 24 },
    ...{ mac: `52:56:00:00:0${segment - 130}:0${last}`, address: `10.20.${segment}.${last}` },
  });
  for (const segment of [131, 132]) {
    const peer = `svc-lv-${randomBytes(3).toString('hex')}`;
    const { mac, address } = nic(segment, 6);
    ip('netns', 'add', peer);
    t.after(() => ip('netns', 'delete', peer));
    const [bridge, port] = [`brpn${segment}`, `up-brpn${segment}`];
    const other = ['peer', 'name', 'eth0', 'address', mac, 'netns', peer];
    run('ip', 'link', 'add', bridge, 'type', 'bridge');
    run('ip', 'link', 'set', bridge, 'up');
    run('ip', 'link', 'add', port, 'type', 'veth', ...other);
    run('ip', 'link', 'set', port, 'master', bridge, 'up');
    ip('-n', peer, 'link', 'set', 'eth0', 'up');
    ip('-n', peer, 'address', 'add', `${address}/24`, 'dev', 'eth0');
  }
  run(
    'nft',
    `table bridge watch_networks {
      counter own { }
      counter strays { }
      chain leaving {
        type filter hook postrouting priority 0;
        oifname up-brpn131 ether saddr & ff:ff:ff:ff:ff:00 == 52:56:00:00:01:00 counter name own
        oifname up-brpn132 ether saddr & ff:ff:ff:ff:ff:00 == 52:56:00:00:02:00 counter name own
        oifname up-brpn131 ether saddr & ff:ff:ff:ff:ff:00 == 52:56:00:00:02:00 counter name strays
        oifname up-brpn132 ether saddr & ff:ff:ff:ff:ff:00 == 52:56:00:00:01:00 counter name strays
        vlan id 1-4094 counter name strays
      }
    }`,
  );
  const countOf = (counter: 'own' | 'strays') =>
    Number(/packets (\d+)/.exec(run('nft', 'list', 'counter', 'bridge', 'watch_networks', counter))![1]);
  const reaches = ({ mac, address }: { mac: string; address: string }, peer: string) =>
    runInGuest(`for device in /sys/class/net/*; do
        [ "$(cat $device/address)" = ${mac} ] && nic=$(basename $device); done
      ip link set $nic up; ip addr add ${address}/24 dev $nic
      ping -c 1 -W 2 ${peer}
      ip link add link $nic name hop type vlan id 132; ip link set hop up
      arping -c 1 -w 1 -I hop ${peer}; ip link del hop`).includes(' 0% packet loss');
  for (const [segment, other] of [
    [131, 132],
    [132, 131],
  ] as const) {
    const own = nic(segment, 5);
    await driver.attachInterface(name, own);
    await until(`network ${segment} is reached`, patientMs, () => reaches(own, nic(segment, 6).address));
    assert.equal(reaches(own, nic(other, 6).address), false);
    await driver.detachInterface(name, own);
  }
  assert.ok(countOf('own') > 0);
  assert.equal(countOf('strays'), 0);
  const checks = await createLibvirtDriver({
    ...node,
    uri: world.uri,
    networkBridges: 'brpn{131-133}',
  }).checkNode([]);
  assert.deepEqual(
    checks.filter(({ subject }) => subject === 'private networks').map(({ state, text }) => [state, text]),
    [['bad', 'The node has no bridge brpn133.']],
  );
  for (const networkId of [31, 32]) for (const _ of [1, 2]) await driver.removeNetwork(networkId);
  assert.ok(!world.virsh('net-list', '--all', '--name').includes('svc-pn'), 'nothing is left');
}
