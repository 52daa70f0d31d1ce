// Slow: guests run in software, and are switched off and on.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { checkContract } from '../testing/contract.ts';
import { guest, neighbour, node } from '../testing/example-guest.ts';
import { createLibvirtWorld, type LibvirtWorld, whyNoLibvirt } from '../testing/libvirt-world.ts';
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
    // Kernels of test machines have no scheduler that limits an interface.
    readSpeed: null,
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
      (await of.checkNode(['tiny.qcow2'])).map(({ subject, state, text }) => [subject, [state, text]]),
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
    driver.fetchImage(
      { file: 'fetched.qcow2', url: `http://127.0.0.1:${port}${path}`, checksum },
      (percent) => steps.push(percent),
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
  const images = (await driver.checkNode(['fetched.qcow2', 'absent.qcow2'])).find(
    ({ subject }) => subject === 'images',
  );
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
  const disk = find(/volume='(vm-\d+(?:-r\d+)?\.qcow2)'/);
  const rescue = /volume='(vm-\d+-rescue-\d+\.qcow2)'/.exec(xml)?.[1];
  const file = execFileSync('qemu-img', ['info', '-U', '--output=json', join(world.poolFolder, disk)]);
  const info = JSON.parse(file.toString()) as { 'virtual-size': number };
  return {
    image: world.readDisk(disk),
    rescue: rescue === undefined ? null : world.readDisk(rescue),
    iso: isoOf(xml) === isoOf(world.virsh('dumpxml', name)) ? isoOf(xml) : 'unlike',
    disk,
    vcpus: Number(find(/<vcpu[^>]*>(\d+)</)),
    memoryMb: Number(find(/<memory unit='KiB'>(\d+)</)) / 1024,
    diskGb: info['virtual-size'] / 1024 ** 3,
    // Also what it has now, and what still has a link: firmware does not let go of a NIC.
    addresses: addressesOf(world, name),
    macs: [...new Set([...macsOf(xml), ...macsOf(world.virsh('dumpxml', name))])],
  };
}

const isoOf = (xml: string) => /volume='(boot)\.iso'/.exec(xml)?.[1] ?? null;

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
