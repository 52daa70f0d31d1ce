import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { createLabDriver, isPermanentRefusal, readPreparedGuests } from '#operations/hypervisors/index.ts';
import { guest } from './testing/example-guest.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-lab-driver-'));
});
after(() => rm(folder, { recursive: true, force: true }));

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
