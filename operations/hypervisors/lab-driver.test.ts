import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { createLabDriver, isPermanentRefusal, readPreparedGuests } from '#operations/hypervisors/index.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-lab-driver-'));
});
after(() => rm(folder, { recursive: true, force: true }));

const guest = {
  name: 'vm-7',
  mac: '52:54:00:00:00:07',
  addresses: [{ address: '203.0.113.17', prefixLength: 24, gateway: '203.0.113.1' }],
  hostname: 'web',
  imageSlug: 'debian-13',
  vcpus: 1,
  memoryMb: 1024,
  diskGb: 10,
  rootPassword: 'never leaves',
  sshKeys: [],
  userData: null,
  privateInterfaces: [],
};

test('every call is the lab’s documented one, and no secret goes along', async () => {
  const socketPath = join(folder, 'control.sock');
  const calls: string[] = [];
  const world = {
    node: 'lab-1',
    bridge: 'br0',
    networks: [
      {
        prefix: '203.0.113.0/24',
        gateway: '203.0.113.1',
        first_guest: '203.0.113.10',
        last_guest: '203.0.113.250',
      },
    ],
  };
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    calls.push(`${request.method} ${request.url} ${body}`.trim());
    response.statusCode = request.method === 'DELETE' ? 204 : 200;
    response.end(request.method === 'DELETE' ? '' : JSON.stringify(world));
  });
  await new Promise<void>((ready) => server.listen(socketPath, ready));
  server.unref();
  const driver = createLabDriver({ socketPath });
  assert.deepEqual(await driver.describeSite(), {
    node: 'lab-1',
    bridge: 'br0',
    networks: [
      {
        prefix: '203.0.113.0/24',
        gateway: '203.0.113.1',
        firstGuest: '203.0.113.10',
        lastGuest: '203.0.113.250',
      },
    ],
  });
  const progress: number[] = [];
  await driver.ensureGuest(guest, async (percent) => void progress.push(percent));
  await driver.setPower('vm-7', 'off');
  await driver.signalShutdown('vm-7');
  await driver.restart('vm-7', 'acpi');
  const nic = { networkId: 31, mac: '52:56:00:00:00:05', address: '10.10.0.2', prefixLength: 24 };
  assert.deepEqual(await driver.attachInterface('vm-7', nic), { requiresReboot: false });
  await driver.detachInterface('vm-7', nic);
  await driver.syncNetwork(31, [{ guest: 'vm-7', interface: nic }]);
  await driver.removeNetwork(31);
  await driver.ensureGuest({ ...guest, mac: null, addresses: [], privateInterfaces: [nic] }, async () => {});
  await driver.ensureGone('vm-7');
  assert.deepEqual(calls, [
    'GET /world',
    'PUT /guests/vm-7 {"mac":"52:54:00:00:00:07","addresses":[{"address":"203.0.113.17","prefix_length":24,"gateway":"203.0.113.1"}],"power":"on"}',
    'PUT /guests/vm-7/power {"power":"off"}',
    'PUT /guests/vm-7/power {"power":"off"}',
    'POST /guests/vm-7/restart',
    'PUT /guests/vm-7/networks/31 {"mac":"52:56:00:00:00:05","address":"10.10.0.2","prefix_length":24}',
    'DELETE /guests/vm-7/networks/31 {"mac":"52:56:00:00:00:05"}',
    'PUT /networks/31 {"members":[{"guest":"vm-7","mac":"52:56:00:00:00:05","address":"10.10.0.2","prefix_length":24}]}',
    'DELETE /networks/31',
    'PUT /guests/vm-7 {"private_interfaces":[{"network":31,"mac":"52:56:00:00:00:05","address":"10.10.0.2","prefix_length":24}],"power":"on"}',
    'DELETE /guests/vm-7',
  ]);
  assert.deepEqual(progress, [20, 95]);
  await new Promise((done) => server.close(done));
});

test('a 4xx is final, a 5xx and silence are worth another attempt', async () => {
  const socketPath = join(folder, 'refusing.sock');
  let status = 409;
  const server = createServer((_request, response) => {
    response.statusCode = status;
    response.end(JSON.stringify({ error: { code: 'mac_taken', message: 'Another guest has it.' } }));
  });
  await new Promise<void>((ready) => server.listen(socketPath, ready));
  server.unref();
  const driver = createLabDriver({ socketPath });
  const attempt = () => driver.ensureGuest(guest, async () => {});
  await assert.rejects(attempt(), (error) => isPermanentRefusal(error) && /mac|Another/.test(String(error)));
  status = 500;
  await assert.rejects(attempt(), (error) => hasCode(error, 'hypervisor.failed'));
  await new Promise((done) => server.close(done));
  await assert.rejects(attempt(), (error) => hasCode(error, 'hypervisor.unreachable'));
});

test('a file of prepared guests is read canonically, and a bad one says what it must be', async () => {
  const file = join(folder, 'guests.json');
  await writeFile(
    file,
    JSON.stringify([{ name: 'a', mac: '52:54:00:5e:00:11', addresses: ['203.0.113.17', '2001:DB8:0::11'] }]),
  );
  const [read] = await readPreparedGuests(file);
  assert.deepEqual(read?.addresses, ['203.0.113.17', '2001:db8::11']);
  for (const content of [
    'not json',
    '{}',
    '[{"name": "a"}]',
    '[{"name":"a","mac":"52:54:00:5e:00:11","addresses":["x"]}]',
  ]) {
    await writeFile(file, content);
    await assert.rejects(readPreparedGuests(file), (error) => hasCode(error, 'hypervisor.guests_file'));
  }
});
