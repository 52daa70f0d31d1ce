import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { ApplicationUse } from '#monitor/facts/index.ts';
import { createSites } from '#monitor/sites/index.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';
import { createNamesLoop, createSearch, type Found, type Search } from './index.ts';
import { parseQuestion, textMax } from './search.ts';

let database: TestDatabase;
let search: Search;

before(async () => {
  database = await createTestDatabase('monitor');
  const db = () => database.db;
  search = createSearch({ db, sites: createSites({ db }) });
  await database.pool.query(`
    insert into sites (name, local_cidrs) values ('Frankfurt 1', '{192.0.2.0/24,2001:db8:1::/48}'), ('Oslo', '{192.0.2.0/25}');
    insert into site_clusters (cluster_id, site_id) values (7, 1);
    insert into sensors (site_id, host_name, node) values
      (1, 'hv-3.frankfurt.example', 'node-3'), (2, 'hv-9.oslo.example', 'node-9');
    insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at, retired_at) values
      (7, 4711, 'node-3', 'prod-db-3', 'running', now(), null), (7, 4712, 'node-3', 'old-db', 'gone', now(), now());
    insert into devices (site_id, segment, mac, first_seen_at, last_seen_at, matched_cluster_id, matched_vm_id,
        matched_vm_name, matched_at) values
      (1, 'br0', '52:54:00:aa:bb:01', now(), now(), 7, 4711, 'prod-db-3', now()),
      (1, 'br0', '00:1b:21:00:00:02', now(), now(), null, null, null, null),
      (2, 'br1', '00:1b:21:00:00:02', now(), now(), null, null, null, null);
    insert into device_names (mac, name) values ('00:1b:21:00:00:02', 'Rack 12 Door_Lock');
    insert into ip_bindings (site_id, device_id, mac, address, first_seen_at, last_seen_at, ended_at, ended_by) values
      (1, 2, '00:1b:21:00:00:02', '192.0.2.10', now() - interval '2 hours', now() - interval '1 hour', now(), 'owner'),
      (1, 1, '52:54:00:aa:bb:01', '192.0.2.10', now(), now(), null, null),
      (1, 1, '52:54:00:aa:bb:01', '2001:db8:1::10', now(), now(), null, null),
      (2, 3, '00:1b:21:00:00:02', '192.0.2.200', now(), now(), null, null)`);
  const used: Record<number, string[]> = {
    1: ['example.com', 'shop.example.com', 'DNS', 'DNS', 'ümlaut.de', '198.51.100.7'],
    2: ['example.com'],
  };
  const facts = {
    newestMinutes: async () => new Map(Object.keys(used).map((id) => [Number(id), 1_795_000_000])),
    rankApplications: async ({ siteId }: { siteId: number }) =>
      ({ rows: used[siteId]!.map((name) => ({ name })) }) as unknown as ApplicationUse,
  };
  const loop = createNamesLoop({ db, facts, clock: systemClock, reporter: silentReporter });
  assert.equal(await loop.runOnce(), true);
  assert.equal(await loop.runOnce(), true, 'names are stored once, even if they occur repeatedly');
});
after(() => database.drop());

const kinds = ['addresses', 'devices', 'machines', 'applications', 'sensors', 'sites'] as const;

async function find(typed: string): Promise<Found> {
  const found = await search.find(typed, 10);
  assert.ok(found, typed);
  return found;
}

/** `kind: name@site` of all matches, for comparison. */
async function names(typed: string): Promise<string[]> {
  const found = await find(typed);
  return kinds.flatMap((kind) =>
    found[kind].map((hit) => {
      const name =
        'address' in hit
          ? hit.address
          : 'mac' in hit
            ? hit.mac
            : 'name' in hit
              ? hit.name
              : 'hostName' in hit
                ? hit.hostName
                : hit.siteName;
      return `${kind} ${name}@${hit.siteId}`;
    }),
  );
}

test('an address is found in every notation, with its live owner and its local sites', async () => {
  for (const typed of [
    '192.0.2.10',
    ' 192.0.2.10 ',
    '192.0.2.10:443',
    '192.0.2.10/32',
    '::ffff:192.0.2.10',
    '::ffff:c000:20a',
  ]) {
    const found = await find(typed);
    assert.deepEqual(
      found.addresses.map((hit) => [hit.address, hit.siteId, hit.mac, hit.endedAtMs]),
      [['192.0.2.10', 1, '52:54:00:aa:bb:01', null]],
      typed,
    );
    assert.deepEqual(
      found.localSites.map((site) => site.siteId),
      [1, 2],
    );
  }
  for (const typed of [
    '2001:db8:1::10',
    '2001:DB8:1:0:0:0:0:10',
    '2001:0db8:0001::0010',
    '[2001:db8:1::10]:80',
    '2001:db8:1::10%eth0',
  ]) {
    assert.deepEqual(await names(typed), ['addresses 2001:db8:1::10@1'], typed);
  }
});

test('the beginning of an address and a prefix find the addresses in it', async () => {
  const both = ['addresses 192.0.2.10@1', 'addresses 192.0.2.200@2'];
  for (const typed of ['192.0.2.', '192.0.2', '192.0', '192.', '192', '192.0.2.0/24']) {
    assert.deepEqual(await names(typed), both, typed);
  }
  assert.deepEqual(await names('192.0.2.0/25'), ['addresses 192.0.2.10@1']);
  for (const typed of ['2001:db8:1:', '2001:db8:1::', '2001:db8', '2001:db8:1::/64']) {
    assert.deepEqual(await names(typed), ['addresses 2001:db8:1::10@1'], typed);
  }
});

test('a MAC and its beginning are found in every notation', async () => {
  for (const typed of [
    '52:54:00:aa:bb:01',
    '52-54-00-AA-BB-01',
    '5254.00aa.bb01',
    '525400AABB01',
    '52:54:00',
    '5254.00aa',
    '525400a',
    '52-54-00-a',
  ]) {
    assert.deepEqual(await names(typed), ['devices 52:54:00:aa:bb:01@1'], typed);
  }
  assert.deepEqual(await names('001b21'), ['devices 00:1b:21:00:00:02@1', 'devices 00:1b:21:00:00:02@2']);
});

test('servers are found by id and by words of their name, devices by their name, live ones first', async () => {
  for (const typed of ['4711', 'vm-4711', 'prod-db', 'db-3', 'PROD db']) {
    const [machine] = (await find(typed)).machines;
    assert.deepEqual([machine?.serverId, machine?.deviceId, machine?.siteId], [4711, 1, 1], typed);
  }
  assert.deepEqual(
    (await find('db')).machines.map((hit) => [hit.serverId, hit.isRetired]),
    [
      [4711, false],
      [4712, true],
    ],
  );
  assert.deepEqual(await names('rack door'), ['devices 00:1b:21:00:00:02@1', 'devices 00:1b:21:00:00:02@2']);
  assert.deepEqual(await names('lock'), await names('rack door'));
});

test('domains and applications are found by their name, a name below them, and words; sensors and sites by a part', async () => {
  assert.deepEqual((await names('www.example.com')).slice(0, 2), [
    'applications example.com@1',
    'applications example.com@2',
  ]);
  assert.deepEqual(await names('https://shop.example.com/cart'), [
    'applications example.com@1',
    'applications example.com@2',
    'applications shop.example.com@1',
  ]);
  assert.deepEqual(await names('shop exam'), ['applications shop.example.com@1']);
  assert.deepEqual(await names('dns'), ['applications DNS@1']);
  assert.deepEqual(await names('üml'), ['applications ümlaut.de@1']);
  assert.deepEqual(await names('198.51.100.7'), ['applications 198.51.100.7@1']);
  assert.deepEqual(await names('hv-9'), ['sensors hv-9.oslo.example@2']);
  assert.deepEqual(await names('frankf'), ['sensors hv-3.frankfurt.example@1', 'sites Frankfurt 1@1']);
});

test('an empty question finds nothing, and special characters have no meaning in the database', async () => {
  for (const typed of ['', '   ', '%', "'", '\\', '!!', '_'])
    assert.equal(await search.find(typed, 10), null, typed);
  for (const typed of [
    "a' | 'b",
    "':* & '",
    'x%',
    'door_',
    'a\\',
    "o'brien",
    '\u0000a',
    'a'.repeat(5_000),
    '::',
    '1::2::3',
    '999.1.1.1',
    '0/0',
    '\ud800x',
  ]) {
    assert.ok((await search.find(typed, 10)) !== undefined, typed);
  }
  assert.deepEqual(
    await names('%db%'),
    ['machines prod-db-3@1', 'machines old-db@1'],
    'special characters only separate words',
  );
});

test('lists are limited and marked as limited', async () => {
  const found = (await search.find('example', 1))!;
  assert.equal(found.applications.length, 1);
  assert.equal(found.hasMore, true);
});

test('a long text is truncated', () => {
  for (const text of ['1.'.repeat(50_000), ':'.repeat(100_000), 'a-'.repeat(50_000), 'f:'.repeat(50_000)])
    assert.deepEqual(parseQuestion(text), parseQuestion(text.slice(0, textMax)), text.slice(0, 4));
});
