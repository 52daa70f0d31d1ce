/** The examples of the README, as printed but for the names of the package, of the installation and of the port. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { ensureImage, ensurePlan } from '#operations/catalog/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { signDelivery } from '#service-kit/webhooks/index.ts';

const [deploys, errors, receives] = [
  ...readFileSync(new URL('README.md', import.meta.url), 'utf8').matchAll(/```ts\n([\s\S]*?)```/g),
].map(([, code]) => code!);
const secret = Buffer.from('a secret of thirty-two bytes....');
let world: World;
let folder: string;
let key: string;
before(async () => {
  world = await createWorld();
  const { db } = world.database;
  const sizes = { vcpus: 1, memoryMb: 1_024, diskGb: 20, hourlyQuanta: 89, monthlyCapQuanta: 60_000 };
  await ensurePlan(db, { slug: 'kvm-1', name: 'KVM 1', ...sizes });
  await ensureImage(db, { slug: 'debian-13', name: 'Debian 13', family: 'debian' });
  key = await world.createKey(await world.createCustomer('Readme'));
  folder = mkdtempSync(join(tmpdir(), 'svc-readme-'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
});
after(async () => {
  rmSync(folder, { recursive: true });
  await world[Symbol.asyncDispose]();
});

function run(name: string, code: string): ChildProcess {
  const file = join(folder, `${name}.ts`);
  const client = JSON.stringify(new URL('index.ts', import.meta.url).href);
  writeFileSync(
    file,
    code.replaceAll("'virtual-servers-client'", client).replaceAll('https://my.example.com', world.url),
  );
  const env = { KEY: key, WEBHOOK_SECRET: `whsec_${secret.toString('base64')}` };
  return spawn(process.execPath, [file], { env, stdio: ['ignore', 'pipe', 'inherit'] });
}

/** What the example prints until it ends; the world works meanwhile. */
async function ended(child: ChildProcess): Promise<string[]> {
  const printed = text(child.stdout!);
  const exit = once(child, 'exit');
  while (child.exitCode === null) await Promise.race([exit, world.jobs.drain()]);
  assert.equal((await exit)[0], 0);
  return (await printed).trim().split('\n');
}

test('the example deploys a server, waits for it, renames it and lists it', async () => {
  const [password, ...names] = await ended(run('deploys', deploys!));
  assert.match(password!, /^\S{16,}$/);
  assert.deepEqual(names, ['web-2']);
});

test('the example of errors says which field is wrong', async () => {
  assert.deepEqual(await ended(run('errors', errors!)), ['plan There is no such plan.']);
});

test('the example of a receiver takes a signed event and refuses another', async () => {
  const child = run(
    'receives',
    receives!.replace('.listen(3000)', '.listen(0, function () { console.log(this.address().port); })'),
  );
  try {
    const [port] = (await once(child.stdout!.setEncoding('utf8'), 'data')) as [string];
    const body = '{"type":"test","data":{"readme":"example"}}';
    const post = async (sent: string) => {
      const headers = signDelivery([secret], 'msg_1', Math.floor(Date.now() / 1_000), body);
      return (await fetch(`http://127.0.0.1:${port.trim()}`, { method: 'POST', headers, body: sent })).status;
    };
    assert.deepEqual([await post(body), await post('{}')], [204, 400]);
  } finally {
    child.kill();
  }
});
