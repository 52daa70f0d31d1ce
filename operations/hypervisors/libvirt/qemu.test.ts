// Slow: guests boot in software, and are switched off and on.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { until } from '#service-kit/testing/until.ts';
import type { FilterPlan, GuestProgress, HypervisorDriver } from '../guest.ts';
import { checkContract } from '../testing/contract.ts';
import { guest, neighbour, node } from '../testing/example-guest.ts';
import { createLibvirtWorld, type LibvirtWorld, whyNoLibvirt } from '../testing/libvirt-world.ts';
import { findBusybox, type LinuxFacts, writeLinuxImage } from '../testing/linux-image.ts';
import { createLibvirtDriver } from './driver.ts';

const skip = whyNoLibvirt();
let world: LibvirtWorld;
before(async () => {
  if (skip === false) world = await createLibvirtWorld();
});
after(() => world?.[Symbol.asyncDispose]());

test('libvirt with QEMU in software keeps the contract of drivers', { skip }, async (t) => {
  const images = await readdir(world.poolFolder);
  await checkContract(t, {
    driver: createLibvirtDriver({ ...node, uri: world.uri }, { connect: world.connect }),
    guest,
    neighbour,
    otherImage: 'other',
    isBootable: false,
    knowsImages: true,
    inspect: async (name) => inspect(name),
    async listLeftovers() {
      const volumes = (await readdir(world.poolFolder)).filter((file) => !images.includes(file));
      const domains = world.virsh('list', '--all', '--name').split(/\s+/);
      const networks = world.virsh('net-list', '--all', '--name').split(/\s+/);
      const filters = world.virsh('nwfilter-list').match(/svc-\S+/g) ?? [];
      return [...volumes, ...domains, ...networks, ...filters].filter((name) => name !== '');
    },
    // Firmware runs no guest agent.
    hasRootPassword: null,
  });
});

test('a full pool and a bridge that is gone end with a reason and leave what there was, and what does not boot is never ready', {
  skip,
}, async () => {
  const folder = await world.addSmallPool('small');
  const noStep = async () => {};
  const small = { ...node, uri: world.uri, storagePool: 'small' };
  const driver = createLibvirtDriver(small, { connect: world.connect });
  const states = async (of: typeof driver) =>
    Object.fromEntries(
      (await of.checkNode(['tiny'])).map(({ subject, state, text }) => [subject, [state, text]]),
    );
  await driver.ensureGuest(guest, noStep);
  const files = (await readdir(folder)).toSorted();
  const filler = join(folder, 'filler');
  await assert.rejects(writeFile(filler, Buffer.alloc(4 * 1024 ** 2)), /ENOSPC/);
  const { size } = await stat(filler);
  await truncate(filler, size - 100 * 1024);

  await assert.rejects(driver.rebuildGuest(guest, 1, noStep), /No space left on device/);
  await assert.rejects(driver.ensureGuest(neighbour, noStep), /No space left on device/);
  const copy = async () => {
    while (!('bytes' in (await driver.createSnapshot(guest.name, 5))));
  };
  await assert.rejects(copy(), /broke off|No space left/);
  assert.equal(await driver.deleteSnapshot(guest.name, 5), true);
  await driver.ensureGone(neighbour.name);
  assert.deepEqual(
    [(await readdir(folder)).toSorted(), await driver.readPower(guest.name)],
    [['filler', ...files], 'on'],
  );
  assert.match(String((await states(driver))['storage pool']), /^bad,The storage pool is full/);
  // It has been on for all this time.
  assert.equal(await driver.ensureGuest(guest, noStep), 'booting');
  await driver.ensureGone(guest.name);

  const gone = createLibvirtDriver({ ...node, uri: world.uri, bridge: 'br9' });
  await assert.rejects(gone.ensureGuest(guest, noStep), /br9/);
  const { bridge, 'network filters': filters, images } = await states(gone);
  assert.deepEqual(
    [bridge, filters, images],
    [
      ['bad', 'The node has no bridge br9.'],
      ['unknown', 'Not checked: connection and bridge first.'],
      ['good', 'The storage pool has tiny.qcow2.'],
    ],
  );
  await gone.ensureGone(guest.name);
  assert.deepEqual(world.virsh('list', '--all', '--name').trim(), '');
});

test('an image is fetched from a URL once, by its checksum, and nothing is left of one that is not what it should be', {
  skip,
}, async (t) => {
  const content = await readFile(join(world.poolFolder, 'other.qcow2'));
  const server = createServer((request, response) => {
    if (request.url === '/absent') response.writeHead(404).end();
    else if (request.url === '/cut')
      response
        .writeHead(200, { 'content-length': content.length + 1 })
        .write(content, () => response.destroy());
    else response.end(request.url === '/text' ? 'no image' : content);
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const driver = createLibvirtDriver({ ...node, uri: world.uri });
  const digest = (algorithm: string, of: string | Buffer) => createHash(algorithm).update(of).digest('hex');
  const steps: number[] = [];
  const fetchFrom = (path: string, checksum: string) =>
    driver.fetchImage({ slug: 'fetched', url: `http://127.0.0.1:${port}${path}`, checksum }, (percent) =>
      steps.push(percent),
    );
  const volumes = async () => (await readdir(world.poolFolder)).filter((name) => name.startsWith('fetched'));
  const sha256 = digest('sha256', content);
  for (const [path, checksum, words] of [
    [
      '/image',
      sha256.replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
      /another checksum: .*instead of/,
    ],
    ['/image', 'abc', /SHA-256 or SHA-512/],
    ['/text', digest('sha256', 'no image'), /not of the format qcow2/],
    ['/cut', sha256, /broke off|ended after/],
    ['/absent', sha256, /answers with status 404/],
  ] as const) {
    await assert.rejects(fetchFrom(path, checksum), words);
    assert.deepEqual(await volumes(), [], path);
  }
  await fetchFrom('/image', digest('sha512', content));
  assert.deepEqual(await volumes(), ['fetched.qcow2']);
  assert.equal(world.readDisk('fetched.qcow2'), 'other');
  assert.equal(steps.at(-1), 100);
  await assert.rejects(fetchFrom('/image', sha256), /has fetched.qcow2 already/);
  const images = (await driver.checkNode(['fetched', 'absent'])).find(({ subject }) => subject === 'images');
  assert.deepEqual(
    [images?.state, images?.text],
    ['bad', 'The storage pool lacks absent.qcow2 (./svc operations fetch-image).'],
  );
  world.virsh('vol-delete', '--pool', 'guests', 'fetched.qcow2');
});

/** By the definition that the next start takes, and by the disk's file. */
function inspect(name: string) {
  if (!world.virsh('list', '--all', '--name').split(/\s+/).includes(name)) return null;
  const xml = world.virsh('dumpxml', name, '--inactive');
  const find = (pattern: RegExp) => pattern.exec(xml)?.[1] ?? 'none';
  const disk = find(/volume='(vm-\d+[^']*\.qcow2)'/);
  const file = execFileSync('qemu-img', ['info', '-U', '--output=json', join(world.poolFolder, disk)]);
  const info = JSON.parse(file.toString()) as { 'virtual-size': number };
  return {
    image: world.readDisk(disk),
    disk,
    vcpus: Number(find(/<vcpu[^>]*>(\d+)</)),
    memoryMb: Number(find(/<memory unit='KiB'>(\d+)</)) / 1024,
    diskGb: info['virtual-size'] / 1024 ** 3,
    // Also what it has now, and what still has a link: firmware does not let go of a NIC.
    addresses: addressesOf(world, name),
    macs: [...new Set([...macsOf(xml), ...macsOf(world.virsh('dumpxml', name))])],
  };
}

/** Without the link-local one. */
function addressesOf(world: LibvirtWorld, name: string): string[] {
  if (!world.virsh('nwfilter-list').includes(`svc-${name}-guard`)) return [];
  const xml = world.virsh('nwfilter-dumpxml', `svc-${name}-guard`);
  const sources = [...xml.matchAll(/<ip(?:v6)? srcipaddr='([^']+)'/g)].map(([, address]) => address!);
  return [...new Set(sources)].filter((address) => !/^(fe80:|::$|0\.0\.0\.0$)/.test(address));
}

function macsOf(xml: string): string[] {
  const linked = xml.split('<interface ').filter((part) => !part.includes("<link state='down'/>"));
  return linked.flatMap((part) => /<mac address='([^']+)'/.exec(part)?.[1] ?? []);
}

const patientMs = 120_000;
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
  const untilReady = (make: () => Promise<GuestProgress>) =>
    until('the guest is ready', patientMs, async () => (await make()) === 'ready');

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

  const changed = { ...linux, rootPassword: randomBytes(12).toString('hex') };
  assert.equal(await driver.setRootPassword(changed, 41), 'next_boot');
  const hasPassword = () => {
    const [, salt, hash] = /^root:\$6\$([^$]+)\$([^:]+):/m.exec(runInGuest('cat /etc/shadow')) ?? [];
    return (
      hash !== undefined &&
      call('openssl', 'passwd', '-6', '-salt', salt!, changed.rootPassword).includes(hash)
    );
  };
  assert.equal(hasPassword(), false);
  await driver.setPower(linux.name, 'off');
  await driver.resizeGuest(linux.name, { vcpus: 2, memoryMb: 160, diskGb: 2 });
  await driver.setPower(linux.name, 'on');
  const resized = await describe();
  assert.ok(resized.boot !== boot && resized.memoryMb >= memoryMb + 60, JSON.stringify(resized));
  assert.deepEqual([resized.vcpus, resized.diskGb], [2, 2]);
  assert.equal(hasPassword(), true);
  await driver.forgetRootPassword(changed);
  assert.deepEqual([pings(ipv4), pings(ipv6)], [false, false], 'the firewall stands');

  await joinFromTwoNodes(linux.name, runInGuest);

  // Before what boots: the sector is of no file.
  const sector = '/dev/vda bs=512 seek=1000 count=1 conv=notrunc,fsync';
  const note = (word: string) => runInGuest(`printf ${word} | dd of=${sector} 2>/dev/null; sync`);
  const noted = () => runInGuest('dd if=/dev/vda bs=512 skip=1000 count=1 2>/dev/null | head -c 6').trim();
  note('before');
  await until('the copy is complete', patientMs, async () => {
    const copy = await driver.createSnapshot(linux.name, 21);
    return 'bytes' in copy && copy.bytes > 0;
  });
  note('after_');
  assert.deepEqual([noted(), (await describe()).boot], ['after_', resized.boot], 'the guest goes on');
  // What an emulator that died leaves behind.
  world.virsh('vol-create-as', 'guests', `${linux.name}-s22.qcow2`, '2G', '--format', 'qcow2');
  world.virsh('domjobinfo', linux.name, '--completed');
  await assert.rejects(driver.createSnapshot(linux.name, 22), /broke off/);
  assert.equal(await driver.deleteSnapshot(linux.name, 22), true);
  await driver.restoreSnapshot(linux.name, 21, 1);
  await driver.setPower(linux.name, 'on');
  await describe();
  assert.deepEqual([noted(), hasPassword()], ['before', false], 'the node has forgotten the password');
  assert.equal(await driver.deleteSnapshot(linux.name, 21), false, 'the disk needs it');

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

/** Private networks over a second node: the guest `name` of the first one meets a guest there, on the networks that both are on alone. */
async function joinFromTwoNodes(name: string, runInGuest: (script: string) => string): Promise<void> {
  await using second = await createLibvirtWorld();
  await copyFile(join(world.poolFolder, 'linux.qcow2'), join(second.poolFolder, 'linux.qcow2'));
  second.virsh('pool-refresh', 'guests');
  for (const bridge of ['brpn131', 'brpn132']) world.joinBridges(second, bridge);
  const [here, there] = [world, second].map(({ uri }) =>
    createLibvirtDriver({ ...node, uri, networkBridges: 'brpn{131-132}' }),
  ) as [HypervisorDriver, HypervisorDriver];
  const nic = (segment: number, last: number) => ({
    ...{ networkId: segment - 100, segment, prefixLength: 24 },
    ...{ mac: `52:56:00:00:0${segment - 130}:0${last}`, address: `10.20.${segment}.${last}` },
  });
  for (const one of [world, second]) {
    const [program, ...args] = one.inside([
      'nft',
      `table bridge watch_networks {
        counter own { }
        counter strays { }
        chain passed {
          type filter hook prerouting priority 0;
          iifname up-brpn131 ether saddr & ff:ff:ff:ff:ff:00 == 52:56:00:00:01:00 counter name own
          iifname up-brpn132 ether saddr & ff:ff:ff:ff:ff:00 == 52:56:00:00:02:00 counter name own
          iifname up-brpn131 ether saddr & ff:ff:ff:ff:ff:00 == 52:56:00:00:02:00 counter name strays
          iifname up-brpn132 ether saddr & ff:ff:ff:ff:ff:00 == 52:56:00:00:01:00 counter name strays
          vlan id 1-4094 counter name strays
        }
      }`,
    ]);
    execFileSync(program!, args);
  }
  const countOf = (one: LibvirtWorld, counter: 'own' | 'strays') => {
    const [program, ...args] = one.inside(['nft', 'list', 'counter', 'bridge', 'watch_networks', counter]);
    return Number(/packets (\d+)/.exec(execFileSync(program!, args, { encoding: 'utf8' }))![1]);
  };
  const alone = { ...neighbour, imageSlug: 'linux', memoryMb: 96, mac: null, addresses: [] };
  const privateInterfaces = [nic(131, 6), nic(132, 6)];
  await until('the guest of the other node is ready', patientMs, async () => {
    return (await there.ensureGuest({ ...alone, privateInterfaces }, async () => {})) === 'ready';
  });
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
    await here.attachInterface(name, own);
    await until(`network ${segment} reaches the other node`, patientMs, () =>
      reaches(own, nic(segment, 6).address),
    );
    assert.equal(reaches(own, nic(other, 6).address), false);
    await here.detachInterface(name, own);
  }
  assert.ok(countOf(world, 'own') > 0 && countOf(second, 'own') > 0);
  assert.deepEqual([countOf(world, 'strays'), countOf(second, 'strays')], [0, 0]);
  const checks = await createLibvirtDriver({
    ...node,
    uri: world.uri,
    networkBridges: 'brpn{131-133}',
  }).checkNode([]);
  assert.deepEqual(
    checks.filter(({ subject }) => subject === 'private networks').map(({ state, text }) => [state, text]),
    [['bad', 'The node has no bridge brpn133.']],
  );
  await there.ensureGone(alone.name);
  for (const driver of [here, there])
    for (const networkId of [31, 32]) for (const _ of [1, 2]) await driver.removeNetwork(networkId);
  for (const one of [world, second])
    assert.ok(!one.virsh('net-list', '--all', '--name').includes('svc-pn'), 'nothing is left');
}
