import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';

const shared = '10.0.0.5';

/** Two private networks of one host, each with a server at the same address; the first has far more traffic. */
async function seed() {
  const server = await startMonitorServer();
  const { monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const names = { host_name: 'hv-1', node: 'hv-1', sensor_version: '0.1.0' };
  const { credential } = (await monitor.sensors.enrol({ token, ...names }))!;
  const sensor = (await monitor.sensors.authenticate(credential))!;
  const at = (capture: string, mac: string, bytes: number, name: string) =>
    captureMinute({
      capture,
      role: 'bridge',
      hosts: [host(shared, bytes, 0, `${capture}|${mac}`)],
      usage: [usageRow({ client: shared, serverBytes: bytes, clientBytes: 1, name })],
    });
  const minutes = [
    at('br7', '02:00:00:00:00:07', 7_000_000, 'seven.example'),
    at('br8', '02:00:00:00:00:08', 8_000, 'eight.example'),
  ];
  // The router between them forwards the first network's packets, without a known owner on the second.
  minutes[1]!.hosts.push(host('10.0.0.77', 5_000, 0, ''));
  minutes[0]!.hosts.push(host('10.0.0.77', 5_000, 0, 'br7|02:00:00:00:00:77'));
  await monitor.inbox.receive(sensor, compressUpload(encodeUpload(createSpool().upload(minutes))), 'zstd');
  await monitor.inbox.drain();
  return { server, monitor, siteId };
}

test('NET-2.4.2: one private address on two networks hides no traffic, and routed packets count once', async () => {
  const { server, monitor, siteId } = await seed();
  await using _server = server;
  const range = { siteId, fromMinute: testMinute, toMinute: testMinute + 60 };
  const expected = [
    [shared, 'br7', 7_000_000],
    [shared, 'br8', 8_000],
    ['10.0.0.77', 'br7', 5_000],
  ];
  const top = async () =>
    (await monitor.facts.listTopAddresses(range, 10)).map((row) => [row.address, row.segment, row.rxBytes]);
  assert.deepEqual(await top(), expected);
  await monitor.facts.rollUp('all');
  assert.deepEqual(await top(), expected, 'rolled up');
  const [step] = await monitor.facts.sumSite({ ...range, stepSeconds: 60 });
  assert.deepEqual([step!.rxBytes, step!.addresses], [7_013_000, 3]);
  const ranked = await monitor.facts.rankApplications({ ...range, direction: 'outbound', limit: 10 });
  assert.deepEqual(
    ranked.rows.map((row) => [row.name, row.inboundBytes]),
    [
      ['seven.example', 7_000_000],
      ['eight.example', 8_000],
    ],
  );
  const devices = await monitor.facts.sumDevices(range, ['br7|02:00:00:00:00:07', 'br8|02:00:00:00:00:08']);
  assert.deepEqual(
    devices.items.map((one) => one.wan?.rxBytes),
    [7_000_000, 8_000],
  );
});

test('an address that two networks use has a page for each, and search finds both', async () => {
  const { server, siteId } = await seed();
  await using _server = server;
  const visitor = await server.signIn('viewer');
  const found = (await visitor.get(`/search?q=${shared}`)).text;
  const href = (segment: string) => `/sites/${siteId}/addresses/${shared}?segment=${segment}`;
  assert.ok(found.includes(href('br7')) && found.includes(href('br8')), found);
  const eight = (await visitor.get(href('br8'))).text;
  assert.match(eight, /eight\.example/);
  assert.doesNotMatch(eight, /seven\.example/);
  assert.match(eight, /This address is used on other networks too/);
  assert.ok(eight.includes('segment=br7'), 'and leads to the other');
  const file = JSON.parse((await visitor.get(`${href('br8')}&table=points&format=json`)).text);
  const bytes = (file.rows ?? file).map((row: { in_bytes: number | null }) => row.in_bytes ?? 0);
  assert.equal(Math.max(...bytes), 8_000);
  const events = (await visitor.get(`/sites/${siteId}/events`)).text;
  assert.doesNotMatch(events, /is claimed by/);
});
