import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { systemClock } from '#common/clock/index.ts';
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { labelDevice } from '#monitor/devices/index.ts';
import { addCommands } from '#monitor/main.ts';
import { minutesAgo } from '#monitor/testing/facts.ts';
import { createWorld, type World } from '#monitor/testing/world.ts';
import { moveDatabaseClock } from '#service-kit/testing/index.ts';
import { findOffline, registryPrefix } from './find-offline.ts';
import { createVendors } from './index.ts';

interface Asked {
  method: string;
  url: string;
  rawHeaders: string[];
  body: string;
}

let world: World;
let registry: Awaited<ReturnType<typeof startRegistry>>;

before(async () => {
  [world, registry] = await Promise.all([createWorld(), startRegistry()]);
});
after(async () => {
  registry.stop();
  await world[Symbol.asyncDispose]();
});

async function startRegistry() {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('testing/registry-process.ts', import.meta.url))],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const asked: Asked[] = [];
  const port = Promise.withResolvers<number>();
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    const lines = text.split('\n');
    text = lines.pop()!;
    for (const line of lines) {
      if (line.startsWith('{')) asked.push(JSON.parse(line) as Asked);
      else port.resolve(Number(line));
    }
  });
  return { url: `http://127.0.0.1:${await port.promise}/v1`, asked, stop: () => child.stdin.end() };
}

/** One pass. Returns the result, the printed lines, and the registry's requests. */
async function pass(options: { limit?: number; isOffline?: boolean; url?: string | null } = {}) {
  const { limit = 200, isOffline = false, url = registry.url } = options;
  const vendors = createVendors({
    db: () => world.database.db,
    clock: systemClock,
    registryUrl: url,
    pauseMs: 1,
  });
  const lines: string[] = [];
  const before = registry.asked.length;
  const report = (line: string) => lines.push(line);
  const result = await vendors.resolve(world.devices.backlog, { limit, isOffline, report });
  // The last answer may arrive before the line about its request.
  while (registry.asked.length < before + (url === registry.url ? result!.lookups : 0))
    await new Promise((wake) => setImmediate(wake));
  return { result: result!, lines, asked: registry.asked.slice(before).map((one) => one.url) };
}

const see = (...macs: string[]) =>
  world.database.db.transaction().execute((trx) =>
    world.devices.recordSightings(trx, [
      {
        siteId: world.siteId,
        minutes: [
          { minute: minutesAgo(3), hosts: macs.map((mac) => ({ deviceKey: `br0|${mac}`, address: '' })) },
        ],
      },
    ]),
  );
const labelOf = async (mac: string) =>
  labelDevice((await world.devices.list(world.siteId, 1_000)).find((one) => one.mac === mac)!);

test('NET-2.1.5: the bundled table names the manufacturer by the longest prefix', async () => {
  assert.match((await findOffline('00:1b:21:00:00:01'))!, /^Intel/);
  // A 24-bit block of the registry itself, with 28-bit blocks of others inside.
  const names = new Set<string | null>();
  for (const digit of '0123456789abcde') names.add(await findOffline(`70:b3:d5:${digit}0:00:01`));
  assert.ok(names.size > 1);
  assert.equal((await findOffline('00:00:5e:00:00:01')) === null, false);
});

test('NET-2.1.4: no locally administered MAC has a manufacturer or a prefix to look up: all first octets, 400 of each', async () => {
  assert.equal(await findOffline('02:60:8c:00:00:01'), null, 'even where the table has it');
  assert.equal(await findOffline('aa:00:04:00:00:01'), null);
  let refused = 0;
  for (let octet = 0; octet < 256; octet += 1) {
    const first = octet.toString(16).padStart(2, '0');
    for (let i = 0; i < 400; i += 1) {
      const mac = `${first}:${(i % 256).toString(16).padStart(2, '0')}:0${Math.floor(i / 256)}:12:34:56`;
      const prefix = registryPrefix(mac);
      if ((octet & 2) === 0) assert.equal(prefix, mac.slice(0, 8).replaceAll(':', '').toUpperCase());
      else {
        assert.equal(prefix, null);
        refused += 1;
      }
    }
  }
  assert.equal(refused, 128 * 400);
});

test('NET-2.1.5: only 24 bits are sent, a name is stored permanently, and applies to every device of the prefix', async () => {
  const known = '04:00:01:aa:bb:cc';
  await see(known, '04:00:01:dd:ee:ff', '06:00:01:aa:bb:cc', '04:00:06:aa:bb:cc');
  assert.equal((await labelOf(known)).source, 'mac');
  const { result, asked, lines } = await pass();
  assert.deepEqual(asked.sort(), ['/v1/04-00-01', '/v1/04-00-06']);
  assert.equal(result.named, 2);
  assert.equal(result.unknown, 1);
  assert.ok(lines.some((line) => line === '1 of 2  04-00-01  Example Networks Ltd (2 devices)'));
  assert.deepEqual(await labelOf(known), { text: 'Example Networks Ltd', source: 'manufacturer' });
  const text = JSON.stringify(registry.asked).toLowerCase();
  for (const secret of ['aa:bb:cc', 'aa-bb-cc', 'aabbcc', 'dd:ee:ff', '203.0.113', 'test site', 'br0'])
    assert.ok(!text.includes(secret), secret);
  for (const { method, body, rawHeaders } of registry.asked) {
    assert.equal(method, 'GET');
    assert.equal(body, '');
    const headers = rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
    assert.ok(
      !headers.includes('cookie') && !headers.includes('referer') && !headers.includes('authorization'),
    );
  }
  // A later device with a resolved prefix is named at once, without a lookup.
  await see('04:00:01:00:00:99');
  assert.equal((await labelOf('04:00:01:00:00:99')).text, 'Example Networks Ltd');
  assert.deepEqual((await pass()).asked, []);
});

test('NET-2.1.5: a failed lookup is retried after twelve hours, a resolved one never', async () => {
  assert.deepEqual((await pass()).asked, [], 'tried a moment ago');
  await moveDatabaseClock(world.database, '11 hours 59 minutes');
  assert.deepEqual((await pass()).asked, []);
  await moveDatabaseClock(world.database, '12 hours 1 minute');
  assert.deepEqual((await pass()).asked, ['/v1/04-00-06']);
});

test('NET-2.1.5: a registry’s answer is limited text, never a page or redirect, and its failures do not stop the pass', async () => {
  const macs = [2, 3, 4, 5, 7, 8, 9].map((last) => `04:00:0${last}:00:00:01`);
  await see(...macs);
  const { result, asked, lines } = await pass();
  assert.equal(asked.length, 7, 'the redirect was not followed');
  assert.equal((await labelOf(macs[0]!)).source, 'mac', 'markup is no name');
  assert.equal((await labelOf(macs[1]!)).text, 'x'.repeat(80));
  assert.equal(result.named, 1);
  assert.equal(result.failed, 6);
  assert.ok(!lines.join('\n').includes('our stack'));
});

test('NET-2.1.5: a prefix that the registry does not know is unknown, and no failure', async () => {
  await see(...[1, 2, 3, 4].map((last) => `04:30:0${last}:00:00:01`));
  const { result } = await pass();
  assert.deepEqual([result.unknown, result.failed, result.ended], [4, 0, null]);
});

test('NET-2.1.5: --limit limits the lookups, --offline and an empty setting make none, and a busy registry is not called again', async () => {
  await see(...[...Array(9)].map((_, i) => `04:20:0${i}:00:00:01`));
  assert.deepEqual((await pass({ isOffline: true })).asked, []);
  const unset = await pass({ url: null });
  assert.match(unset.result.ended!, /SVC_MAC_VENDOR_LOOKUP_URL/);
  assert.equal((await pass({ limit: 4 })).asked.length, 4);
  assert.equal((await pass({ limit: 200 })).asked.length, 5);
  await see(...[...Array(9)].map((_, i) => `04:10:0${i}:00:00:01`));
  const busy = await pass();
  assert.equal(busy.asked.length, 3);
  assert.match(busy.result.ended!, /failed 3 times in a row/);
  const down = await pass({ url: 'http://127.0.0.1:9' });
  assert.equal(down.result.failed, 3);
});

test('NET-2.1.5, NET-8: by default a pass of the command makes at most 200 lookups', () => {
  const program = new Command();
  addCommands(program);
  const command = program.commands.find((one) => one.name() === 'resolve_mac_vendors')!;
  assert.match(
    command.helpInformation(),
    /--limit <count> +maximum number of registry lookups \(default: "200"\)/,
  );
});

test('NET-2.1.5: the offline pass names a backlog that was stored without the table', async () => {
  await see('00:1b:21:00:00:44');
  await world.database.pool.query("update devices set manufacturer = null where mac = '00:1b:21:00:00:44'");
  const { result } = await pass({ isOffline: true });
  assert.equal(result.offline, 1);
  assert.match((await labelOf('00:1b:21:00:00:44')).text, /^Intel/);
});

test('NET-2.1.5: a public registry is the default; with an empty setting and in the demo world there are no lookups', () => {
  const hostOf = (environment: NodeJS.ProcessEnv) =>
    compose(readConfig({ SVC_LOG_LEVEL: 'error', ...environment })).vendors.registryHost;
  assert.equal(hostOf({}), 'api.macvendors.com');
  assert.equal(hostOf({ SVC_MAC_VENDOR_LOOKUP_URL: '' }), null);
  assert.equal(hostOf({ SVC_DEMO_WORLD: '1' }), null);
  assert.equal(hostOf({ SVC_MAC_VENDOR_LOOKUP_URL: 'https://registry.example/oui/' }), 'registry.example');
});
