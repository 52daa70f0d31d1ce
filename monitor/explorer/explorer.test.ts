import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { nameApplication } from '#monitor/applications/index.ts';
import { createFactStore } from '#monitor/facts/index.ts';
import type { NetworkRecord } from '#monitor/peers/index.ts';
import {
  captureMinute,
  createSpool,
  host,
  type MonitorWorld,
  testMinute,
  usageRow,
} from '#monitor/testing/index.ts';
import { percentile95 } from '#service-kit/explorer/index.ts';
import { createExplorer, parseQueryUrl } from './index.ts';
import { createTraffic, first, peer, range, second } from './testing/traffic-world.ts';

const ask = (world: MonitorWorld, values: Record<string, string> = {}) => {
  const { query, faults } = parseQueryUrl(world.siteId, { ...range, step: '60', ...values });
  assert.deepEqual(faults, []);
  return world.explorer.explore(query);
};
const keysOf = (answer: Awaited<ReturnType<typeof ask>>) =>
  answer.rows.map((row) => [...row.key.map((one) => one.label), row.amount.inBytes, row.amount.outBytes]);

test('NET-2.4.2: sums and steps are those of the traffic page, and a minute without a capture is a gap', async () => {
  await using world = await createTraffic();
  const answer = await ask(world);
  const page = await world.traffic.readSiteTraffic(
    world.siteId,
    testMinute * 1000,
    (testMinute + 180) * 1000,
    60,
  );
  assert.deepEqual(answer.series.inBps, page.inBps);
  assert.deepEqual(answer.series.outBps, page.outBps);
  assert.deepEqual(answer.series.minutes, [1, 0, 1]);
  assert.equal(answer.series.inBps[1], null);
  assert.deepEqual(answer.total, { inBytes: 5300 + 15_300, outBytes: 1600, packets: null });
  assert.equal(answer.percentile95, ((15_300 + 800) * 8) / 60);
  assert.equal(answer.source, 'addresses');
  assert.deepEqual(answer.timesMs, page.timesMs);
});

test('NET-2.4.2: addresses, and what they used, are those of their pages', async () => {
  await using world = await createTraffic();
  const { siteId } = world;
  const top = await world.traffic.listTopAddresses(siteId, testMinute * 1000, (testMinute + 180) * 1000, 10);
  const byAddress = await ask(world, { by: 'address' });
  assert.deepEqual(
    byAddress.rows.map((row) => [row.key[0]!.value, row.amount.inBytes, row.amount.outBytes]),
    top.map((row) => [row.address, row.rxBytes, row.txBytes]),
  );
  const used = await world.applications.sumAddressApplications(siteId, first, testMinute, testMinute + 180);
  const byName = await ask(world, { by: 'application', q: `address:${first}` });
  assert.deepEqual(
    byName.rows.map((row) => [row.key[0]!.value, row.amount.inBytes, row.amount.outBytes]),
    used.map((row) => [row.name, row.inboundBytes, row.outboundBytes]),
  );
  const listed = await world.applications.list(
    siteId,
    'all',
    testMinute * 1000,
    (testMinute + 180) * 1000,
    10,
  );
  const all = await ask(world, { by: 'application' });
  assert.equal(all.total.inBytes + all.total.outBytes, listed.bytes);
  assert.equal(byName.source, 'applications');
});

test('servers, accounts and peers are grouped and filtered by their names', async () => {
  await using world = await createTraffic();
  assert.deepEqual(keysOf(await ask(world, { by: 'server' })), [
    ['web 1', 20_000, 1400],
    ['db', 600, 200],
  ]);
  assert.deepEqual(keysOf(await ask(world, { by: 'customer', q: '-server:"WEB 1"' })), [
    ['Account 42', 600, 200],
  ]);
  const talks = await ask(world, { by: 'server,peer', q: 'customer:41 transport:tcp' });
  assert.equal(talks.source, 'pairs');
  assert.deepEqual(keysOf(talks), [
    ['web 1', peer, 16_000, 1400],
    ['web 1', '203.0.113.5', 4000, 0],
  ]);
  assert.deepEqual(talks.limits, []);
  const busiest = await ask(world, { by: 'peer', q: 'peer:198.51.100.0/24 port:443', measure: 'packets' });
  assert.equal(busiest.total.packets, 60);
  const rest = await ask(world, { by: 'application', top: '1' });
  assert.equal(rest.rest!.groups, 1);
  assert.equal(
    rest.rows[0]!.amount.inBytes + rest.rest!.amount.inBytes,
    rest.total.inBytes,
    'rows and the rest are everything',
  );
  assert.ok(Math.abs(rest.rows[0]!.share! + rest.rest!.share! - 1) < 1e-9);
  assert.equal(rest.rest!.rates[1], null);
});

test('one direction counts its bytes alone, in rows, totals, steps and the period before', async () => {
  await using world = await createTraffic();
  const inward = await ask(world, { by: 'server', q: 'direction:in' });
  assert.deepEqual(keysOf(inward), [
    ['web 1', 20_000, 0],
    ['db', 600, 0],
  ]);
  assert.deepEqual(inward.total, { inBytes: 20_600, outBytes: 0, packets: null });
  assert.deepEqual(
    inward.rows.map(({ share }) => share),
    [20_000 / 20_600, 600 / 20_600],
  );
  assert.deepEqual([inward.percentile95Out, inward.series.outBps], [null, [null, null, null]]);
  const outward = await ask(world, { by: 'address', q: '-direction:in', top: '1' });
  assert.deepEqual(keysOf(outward), [[first, 0, 1400]]);
  assert.deepEqual(outward.rest!.amount, { inBytes: 0, outBytes: 200, packets: null });
  const opened = await ask(world, { by: 'application', q: 'direction:in direction:inbound' });
  assert.deepEqual(
    opened.rows.map((row) => row.amount.outBytes),
    [0],
  );
  const packets = await ask(world, { q: 'direction:in', measure: 'packets' });
  assert.deepEqual(
    [packets.measure, packets.limits.map((one) => one.code)],
    ['bytes', ['packets_both_ways']],
  );
});

test('a port of one transport, a server by its number and a sensor by its node are filters', async () => {
  await using world = await createTraffic();
  const total = async (q: string) => (await ask(world, { q })).total.inBytes;
  assert.ok((await total('port:443')) > 0);
  assert.equal(await total('port:tcp/443'), await total('port:443'));
  assert.equal(await total('port:udp/443'), 0);
  assert.equal(await total('port:udp/443,22'), await total('port:22'));
  assert.equal(await total('server:1'), await total('server:"web 1"'));
  assert.equal(await total('server:7/1'), await total('server:"web 1"'));
  assert.equal(await total('node:node-1'), await total('sensor:node-1'));
});

test('values that the site has not, and ranges older than peers, are said and not taken for zero', async () => {
  await using world = await createTraffic();
  const unknown = await ask(world, { q: 'server:none sensor:node-9 device:02:00:00:00:00:77' });
  assert.deepEqual(
    unknown.limits.map((one) => [one.code, one.dimension]),
    [
      ['no_such_value', 'server'],
      ['no_such_value', 'device'],
      ['no_such_value', 'sensor'],
    ],
  );
  assert.deepEqual(unknown.series.inBps, [null, null, null], 'nothing could see it');
  const old = await ask(world, { range: '2d', step: 'auto', by: 'peer' });
  assert.deepEqual(
    old.limits.map((one) => one.code),
    ['peers_kept_24_hours'],
  );
});

test('the period before stands beside each row, step by step', async () => {
  await using world = await createTraffic();
  const late = { from: new Date((testMinute + 120) * 1000).toISOString() };
  const answer = await ask(world, {
    ...{ ...late, to: new Date((testMinute + 240) * 1000).toISOString(), by: 'address', compare: 'previous' },
  });
  assert.deepEqual(answer.previousTotal, { inBytes: 5300, outBytes: 800, packets: null });
  assert.deepEqual(
    answer.rows.map((row) => row.previous?.inBytes),
    [5000, 300],
  );
  assert.deepEqual(answer.series.previous, [((5300 + 800) * 8) / 60, null]);
});

test('a period before in which no capture listened is unknown, not zero, and the answer says so', async () => {
  await using world = await createTraffic();
  const answer = await ask(world, { by: 'address', compare: 'previous' });
  assert.deepEqual([answer.previousTotal, answer.series.previous], [null, []]);
  assert.deepEqual(
    answer.rows.map((row) => row.previous),
    [null, null],
  );
  assert.deepEqual(
    answer.limits.map((one) => one.code),
    ['previous_not_observed'],
  );
});

test('too many steps are refused with what to do', async () => {
  await using world = await createTraffic();
  await assert.rejects(ask(world, { range: '30d', step: '60' }), (error) =>
    hasCode(error, 'explorer.too_many_steps'),
  );
});

test('a statement that takes too long ends with what to narrow, and its connection is free again', async () => {
  await using world = await createTraffic();
  const db = () => world.database.db;
  const facts = createFactStore({ db, nameApplication, exploreMs: 50 });
  const explorer = createExplorer({ db, facts, devices: world.devices, describeNetworks: null });
  const { query } = parseQueryUrl(world.siteId, { ...range, step: '60' });
  const client = await world.database.pool.connect();
  await client.query('begin');
  await client.query('lock table site_minutes in access exclusive mode');
  await assert.rejects(
    explorer.explore(query),
    (error) => hasCode(error, 'facts.too_slow') && /shorter range/.test((error as Error).message),
  );
  await client.query('rollback');
  client.release();
  assert.ok((await world.explorer.explore(query)).total.inBytes > 0);
});

test('completion offers what the site has', async () => {
  await using world = await createTraffic();
  const values = async (dimension: Parameters<typeof world.explorer.complete>[1], typed: string) =>
    (await world.explorer.complete(world.siteId, dimension, typed, 10)).map((one) => one.value);
  assert.deepEqual(await values('server', 'WEB'), ['web 1']);
  assert.deepEqual(await values('customer', ''), ['41', '42']);
  assert.deepEqual(await values('address', '192.0.2.1'), [first, second]);
  assert.deepEqual(await values('sensor', 'node'), ['node-1']);
  assert.deepEqual(await values('transport', 'ic'), ['icmp', 'icmpv6']);
  assert.deepEqual(await values('peer', '1'), []);
});

test('the 95th percentile is the nearest rank of what is known', () => {
  assert.equal(percentile95([]), null);
  assert.equal(percentile95([null, 5]), 5);
  assert.equal(percentile95(Array.from({ length: 100 }, (_, i) => 100 - i)), 95);
});

test('steps of a day are those in which traffic is kept: ten minutes, or of names by address and of peers hours', async () => {
  await using world = await createTraffic();
  const stepsOf = async (values: Record<string, string>) => {
    const { query } = parseQueryUrl(world.siteId, { range: '24h', ...values });
    return (await world.explorer.explore(query)).stepSeconds;
  };
  const names = { by: 'application' };
  assert.equal(await stepsOf({ by: 'server' }), 600);
  assert.equal(await stepsOf(names), 600);
  assert.equal(await stepsOf({ ...names, q: `address:${first}` }), 3600);
  assert.equal(await stepsOf({ ...names, measure: 'packets' }), 3600);
  assert.equal(await stepsOf({ by: 'peer' }), 3600);
  assert.equal(await stepsOf({ by: 'peer', range: '1h' }), 60);
  assert.equal(await stepsOf({ by: 'peer', step: '600' }), 600, 'a step that is asked for stays');
});

test('countries and ASs of peers are those that the network files name, as groups and as filters', async () => {
  await using world = await createTraffic();
  const records: Record<string, NetworkRecord> = {
    [peer]: { asNumber: 64_500, asName: 'Example', country: 'DE' },
    '203.0.113.5': { asNumber: 64_501, asName: null, country: 'FR' },
  };
  const none = { asNumber: null, asName: null, country: null };
  const { facts, devices } = world;
  const db = () => world.database.db;
  const describeNetworks = async (addresses: readonly string[]) =>
    addresses.map((address) => records[address] ?? none);
  const explorer = createExplorer({ db, facts, devices, describeNetworks });
  const read = async (values: Record<string, string>) => {
    const { query, faults } = parseQueryUrl(world.siteId, { ...range, step: '60', ...values });
    assert.deepEqual(faults, []);
    return explorer.explore(query);
  };
  const byPeer = await read({ by: 'peer' });
  const inBytes = (address: string) =>
    byPeer.rows.find((one) => one.key[0]!.value === address)?.amount.inBytes ?? 0;
  const known = inBytes(peer) + inBytes('203.0.113.5');
  const byCountry = await read({ by: 'country,as' });
  const amounts = new Map(
    byCountry.rows.map((one) => [one.key.map(({ label }) => label).join(', '), one.amount.inBytes]),
  );
  assert.equal(amounts.get('Germany, AS64500 Example'), inBytes(peer));
  assert.equal(amounts.get('France, AS64501'), inBytes('203.0.113.5'));
  assert.equal(amounts.get('Unknown country, Unknown AS'), byPeer.total.inBytes - known || undefined);
  assert.deepEqual(byCountry.total, byPeer.total);
  assert.equal((await read({ q: 'country:de' })).total.inBytes, inBytes(peer));
  assert.equal((await read({ q: 'as:64501' })).total.inBytes, inBytes('203.0.113.5'));
  assert.equal(
    (await read({ q: '-country:FR' })).total.inBytes,
    byPeer.total.inBytes - inBytes('203.0.113.5'),
  );
  const nowhere = await read({ q: 'country:DE as:AS64501 -server:db' });
  assert.equal(nowhere.total.inBytes, 0);
  const unknown = await read({ q: 'as:AS7', compare: 'previous' });
  assert.equal(unknown.total.inBytes, 0);
  assert.match(unknown.limits.map((one) => one.message).join(' '), /This site has no peer in AS7/);
  assert.ok(explorer.dimensions.includes('country'));
});

test('without a network file there is neither country nor AS, and the answer says what to set', async () => {
  await using world = await createTraffic();
  assert.ok(!world.explorer.dimensions.includes('as'));
  const answer = await ask(world, { by: 'as' });
  assert.deepEqual(
    answer.rows.map((one) => one.key[0]!.label),
    ['Unknown AS'],
  );
  assert.match(answer.limits[0]!.message, /SVC_MONITOR_NETWORK_FILE/);
});

test('hours and ten minutes that were rolled up before they had detail are read from minutes', async () => {
  await using world = await createTraffic();
  const hour = Math.floor(testMinute / 3600) * 3600 - 2 * 3600;
  const minute = captureMinute({
    minute: hour,
    hosts: [host(first, 5000, 700)],
    usage: [usageRow({ packets: 30 })],
  });
  await world.apply(createSpool().upload([minute]));
  await world.facts.rollUp('all');
  const utc = (second: number) => new Date(second * 1000).toISOString();
  const asked = { from: utc(hour), to: utc(hour + 3600), step: '600' };
  const read = async () => [
    await ask(world, { ...asked, by: 'application,address', measure: 'packets', step: '3600' }),
    await ask(world, { ...asked, by: 'address' }),
  ];
  const [names, addresses] = await read();
  assert.deepEqual([names!.total.packets, addresses!.total.inBytes], [30, 5000]);
  assert.deepEqual(names!.grains, ['hours']);
  assert.ok(addresses!.grains.includes('tens'));
  await world.rows('update rolled_hours set has_detail = false');
  await world.rows('update rolled_tens set has_addresses = false');
  await world.rows('update application_hours set packets = null');
  await world.rows('delete from address_tens');
  const [namesAfter, addressesAfter] = await read();
  assert.deepEqual([namesAfter!.rows, addressesAfter!.rows], [names!.rows, addresses!.rows]);
});
