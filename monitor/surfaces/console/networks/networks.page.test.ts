import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { networkFile } from '#monitor/peers/testing/network-file.ts';
import { captureMinute, createSpool, host, usageRow } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';

const local = '192.0.2.10';
const folder = mkdtempSync(join(tmpdir(), 'svc-networks-page-'));
const file = join(folder, 'networks.mmdb');
const hour = Math.floor(Date.now() / 3_600_000) * 3600 - 2 * 3600;
/** Long after its pairs: such minutes come from a sensor that was offline. */
const lateHour = hour - 9 * 86_400;
const utc = (second: number) => `${new Date(second * 1000).toISOString().slice(0, 16)}Z`;
let server: MonitorServer;

before(async () => {
  server = await startMonitorServer({ SVC_MONITOR_NETWORK_FILE: file });
  const { monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const made = await monitor.sensors.enrol({ token, host_name: 'hv-1', node: 'n1', sensor_version: '0.1.0' });
  const sensor = (await monitor.sensors.authenticate(made!.credential))!;
  const talk = (minute: number, peer: string, isInbound = false) =>
    captureMinute({
      minute,
      hosts: [host(local, 9_000, 900)],
      usage: [
        usageRow({
          client: isInbound ? peer : local,
          server: isInbound ? local : peer,
          direction: isInbound ? 'inbound' : 'outbound',
          clientBytes: 700,
          serverBytes: 8_000,
          packets: 12,
        }),
      ],
    });
  const minutes = [
    talk(hour, '203.0.113.9'),
    talk(hour + 60, '203.0.113.200', true),
    talk(hour + 120, '198.51.100.7'),
    talk(lateHour + 300, '2001:db8:77::5'),
  ];
  await monitor.inbox.receive(sensor, compressUpload(encodeUpload(createSpool().upload(minutes))), 'zstd');
  await monitor.inbox.drain();
});
after(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const read = async (path: string) => (await server.signIn('viewer')).get(`/sites/${server.siteId}${path}`);
const rowsOf = async (path: string, table: string) =>
  (JSON.parse((await read(`${path}&format=json&table=${table}`)).text) as { rows: Record<string, unknown>[] })
    .rows;
const at = (second: number, hours = 1) => `range=custom&from=${utc(second)}&to=${utc(second + hours * 3600)}`;

test('NET-2.2.7: a complaint about an address of a network is answered by the hour, without the address', async () => {
  const rows = await rowsOf(`/networks?network=203.0.113.9&${at(hour)}`, 'peers');
  assert.deepEqual(
    rows.map((row) => [
      row.address,
      row.network,
      row.in_bytes,
      row.out_bytes,
      row.packets,
      row.minutes,
      row.opened_by,
    ]),
    [[local, '203.0.113.0/24', 8_700, 8_700, 24, 2, 'both']],
  );
  const { text } = await read(`/networks?network=203.0.113.9&${at(hour)}`);
  assert.match(text, /Answered for 203\.0\.113\.0\/24/);
  assert.doesNotMatch(
    text.replaceAll('value="203.0.113.9"', '').replaceAll('network=203.0.113.9', ''),
    /203\.0\.113\.(9|200)/,
  );
  const before = await read(`/networks?network=203.0.113.0/24&${at(hour - 3600)}`);
  assert.match(before.text, /No traffic with/);
});

test('NET-2.2.7: networks of minutes that arrived after their pairs are kept too', async () => {
  const rows = await rowsOf(`/networks?network=2001:db8:77::/48&${at(lateHour)}`, 'peers');
  assert.deepEqual(
    rows.map((row) => [row.address, row.in_bytes, row.minutes]),
    [[local, 8_000, 1]],
  );
});

test('the page of an address lists its networks, and a file of the operator names them', async () => {
  const path = `/addresses/${local}/networks?${at(hour)}`;
  assert.deepEqual(
    (await rowsOf(path, 'networks')).map((row) => [
      row.network,
      row.in_bytes,
      'as_number' in row,
      'country' in row,
    ]),
    [
      ['203.0.113.0/24', 8_700, false, false],
      ['198.51.100.0/24', 8_000, false, false],
    ],
    'columns without a file are absent',
  );
  assert.match((await read(path)).text, /can&#39;t be read|can't be read/);
  writeFileSync(
    file,
    networkFile({
      '203.0.113.0/24': {
        autonomous_system_number: 64_500,
        autonomous_system_organization: '<b>Example</b>',
        country: { iso_code: 'DE' },
      },
    }),
  );
  server.monitor.peers.forgetFiles();
  const { text } = await read(path);
  assert.match(text, /AS64500 &lt;b&gt;Example&lt;\/b&gt;[\s\S]*DE/);
  assert.doesNotMatch(text, /can't be read|can&#39;t be read/);
  const section = await read(`/addresses/${local}?range=24h`);
  assert.match(section.text, /Networks it talked to[\s\S]*203\.0\.113\.0\/24/);
});

test('a network that is none is an error beside its field', async () => {
  for (const wrong of ['example.net', '203.0.113.0/40', '%3Cb%3E']) {
    const { status, text } = await read(`/networks?network=${wrong}`);
    assert.equal(status, 422, wrong);
    assert.match(text, /This is not a network/);
  }
  assert.match((await read('/networks?network=')).text, /Enter a network/);
  assert.match((await read(`/networks?network=::/0&${at(hour, 24 * 200)}`)).text, /kept for three months/);
});
