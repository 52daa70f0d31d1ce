import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, usageRow } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer, type Visitor } from '#monitor/testing/server.ts';

let server: MonitorServer;
let operator: Visitor;
let path: string;
let minute: number;
const mac = '00:1b:21:00:00:0a';
const address = '203.0.113.10';

before(async () => {
  minute = Math.floor(Date.now() / 60_000) * 60 - 300;
  server = await startMonitorServer();
  operator = await server.signIn('operator');
  path = `/sites/${server.siteId}/devices`;
  const { monitor, siteId } = server;
  await monitor.sites.setLocalCidrs(systemActor, siteId, ['203.0.113.0/24', '10.0.0.0/8']);
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const made = await monitor.sensors.enrol({ token, host_name: 'n1', node: 'n1', sensor_version: '0.1.24' });
  const sensor = await monitor.sensors.authenticate(made!.credential);
  const spool = createSpool();
  const upload = (at: number, device: string) => {
    const usage = [usageRow({ client: address, name: 'example.net', clientBytes: 500, serverBytes: 7000 })];
    return spool.upload([
      captureMinute({
        minute: at,
        hosts: [host(address, 7000, 500, `uplink0|${device}`), host('203.0.113.99', 900, 90)],
        usage,
      }),
    ]);
  };
  for (const one of [upload(minute, mac), upload(minute + 60, mac), upload(minute + 120, mac)])
    await monitor.inbox.receive(sensor!, compressUpload(encodeUpload(one)), 'zstd');
  await monitor.inbox.drain();
  const seen = (deviceKey: string, ip: string) => ({ deviceKey, address: ip });
  const others = [...Array(60)].map((_, i) =>
    seen(`br0|02:00:00:00:00:${(i + 16).toString(16)}`, `10.0.0.${i}`),
  );
  await server.database.db.transaction().execute((trx) =>
    monitor.devices.recordSightings(trx, [
      { siteId, minutes: [{ minute, hosts: others }] },
      {
        siteId,
        minutes: [0, 60, 120].map((after) => ({
          minute: minute + after,
          hosts: [seen('br0|00:1b:21:00:00:0b', address), seen(`br0|${mac}`, '10.9.9.9')],
        })),
      },
      {
        siteId,
        minutes: [{ minute, hosts: [seen('br0|00:1b:21:00:00:0c', '10.8.8.8')] }],
        inventory: {
          interfaces: [],
          neighbours: [{ segment: 'br0', mac: '00:1b:21:00:00:0c', address: '10.8.8.8', isRouter: true }],
        },
      },
    ]),
  );
});
after(() => server[Symbol.asyncDispose]());

const json = async (query: string) => JSON.parse((await operator.get(`${path}?format=json&${query}`)).text);
const labels = async (query: string) =>
  (await json(query)).rows.map((row: { label: string; mac: string }) => row.mac).sort();

test('NET-2.2.10: the list separates WAN and LAN, and shows Unavailable without owned counters', async () => {
  const { text } = await operator.get(`${path}?q=${mac}`);
  for (const header of ['WAN in / out', 'LAN in / out']) assert.ok(text.includes(header), header);
  assert.match(text, /Unavailable/);
  const rows = (await json(`q=${mac}`)).rows;
  const owned = rows.find((row: { segment: string }) => row.segment === 'uplink0');
  assert.equal(owned.wan_in_bytes, 21_000);
  assert.equal(owned.wan_out_bytes, 1_500);
  const bridge = rows.find((row: { segment: string }) => row.segment === 'br0');
  assert.deepEqual([bridge.wan_in_bytes, bridge.lan_in_bytes], [null, null], 'no total of the MAC instead');
});

test('search results are in a table per kind, with state and without empty columns', async () => {
  const headers = async (text: string) =>
    [...(await operator.get(`/search?q=${text}`)).text.matchAll(/<th scope="col"[^>]*>([^<]*)</g)].map(
      ([, name]) => name,
    );
  assert.deepEqual(await headers(address), ['Address', 'Owner', 'State', 'Site']);
  assert.deepEqual(await headers(mac), ['Device', 'MAC and segment', 'State', 'Site']);
  assert.match((await operator.get(`/search?q=${mac}`)).text, /live/);
  assert.deepEqual(await headers('Test'), ['Site']);
});

test('NET-2.2.9: a router is listed, and no traffic is attributed to it', async () => {
  const { text } = await operator.get(`${path}?q=00:1b:21:00:00:0c`);
  assert.match(text, /router/);
  assert.match(text, /not attributed/);
});

test('the list can be filtered, searched, sorted and paged, and its files have the same rows', async () => {
  const all = await operator.get(path);
  assert.match(all.text, /64 live, 0 archived; one address is claimed by more than one MAC/);
  assert.match(all.text, /1–50 of 64/);
  const second = await operator.get(`${path}?page=2`);
  assert.match(second.text, /51–64 of 64/);
  assert.deepEqual(await labels('show=conflict'), [mac, '00:1b:21:00:00:0b']);
  assert.equal((await labels('show=randomized')).length, 60);
  assert.equal((await labels('show=archived')).length, 0);
  assert.deepEqual(await labels('q=10.8.8.8'), ['00:1b:21:00:00:0c']);
  assert.deepEqual(await labels('q=%25'), [], 'SQL characters are ordinary text');
  const sorted = (await json('sort=mac&direction=asc')).rows.map((row: { mac: string }) => row.mac);
  assert.deepEqual(sorted, [...sorted].sort());
  const csv = await operator.get(`${path}?format=csv&show=conflict`);
  assert.match(csv.text, /^label,state,addresses,wan_state,lan_state,/);
  assert.equal((await operator.get(`${path}?show=nothing`)).status, 422);
});

test('NET-2.2.10: a device’s page has WAN and LAN charts, windows of a day over a month, its history and conflicts', async () => {
  const [row] = (await json(`q=${address}&sort=segment&direction=desc`)).rows;
  assert.equal(row.segment, 'uplink0');
  const list = await server.monitor.devices.list(server.siteId, 100);
  const device = list.find((one) => one.segment === 'uplink0')!;
  const page = await operator.get(`${path}/${device.id}?range=1h`);
  assert.equal(page.status, 200);
  for (const part of ['WAN in', 'LAN out', 'example.net', address, 'Also claimed by', 'address in conflict'])
    assert.ok(page.text.includes(part), part);
  assert.match(page.text, /Another MAC claims 203\.0\.113\.10 as well/);
  const explore = /href="([^"]*\/explore\?[^"]*)"/.exec(page.text)![1]!.replaceAll('&amp;', '&');
  const explored = await operator.get(explore);
  assert.doesNotMatch(explored.text, /This site has no device/);
  assert.match(explored.text, /21\.0 kB/, 'the explorer has the bytes of the device');
  const hour = JSON.parse((await operator.get(`${path}/${device.id}/wan.json?range=1h`)).text);
  assert.equal(hour.unit, 'bit/s');
  assert.deepEqual(
    hour.series[0].values,
    [7000 * 8, 7000 * 8, 7000 * 8].map((bits) => Number((bits / 60).toPrecision(6))),
  );
  const month = JSON.parse((await operator.get(`${path}/${device.id}/wan.json?range=30d`)).text);
  assert.equal(month.unit, 'bytes');
  assert.equal(month.stepMs, 86_400_000);
  assert.equal(
    month.series[0].values.reduce((sum: number, bytes: number) => sum + bytes, 0),
    21_000,
  );
  const file = JSON.parse((await operator.get(`${path}/${device.id}?format=json&table=addresses`)).text);
  assert.deepEqual(
    file.rows.map((one: { address: string; state: string }) => `${one.address} ${one.state}`),
    [`${address} conflict`],
  );
  const router = list.find((one) => one.mac.endsWith('0c'))!;
  assert.match((await operator.get(`${path}/${router.id}`)).text, /It is a router/);
});
