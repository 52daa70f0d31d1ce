import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';

const utc = (minute: number) => `${new Date(minute * 1000).toISOString().slice(0, 16)}Z`;

test('NET-2.2.10: every number of a site links to its addresses, and each address to the chosen capture, with the reason', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const made = await monitor.sensors.enrol({ token, host_name: 'hv-1', node: 'n1', sensor_version: '0.1.0' });
  const sensor = (await monitor.sensors.authenticate(made!.credential))!;
  const hosts = [
    {
      ...host('192.0.2.10', 7_500_000, 750_000, 'br0|52:54:00:00:00:01'),
      ownScan: { rxBytes: 1_500_000, txBytes: 250_000, packets: 100 },
    },
    host('2001:db8::a', 6_000, 1_000),
  ];
  const minutes = [0, 60].flatMap((after) => [
    captureMinute({ minute: testMinute + after, hosts, usage: [usageRow()] }),
    captureMinute({
      minute: testMinute + after,
      capture: 'br0',
      role: 'bridge',
      hosts: [host('192.0.2.10', 7_000_000, 700_000)],
    }),
  ]);
  await monitor.inbox.receive(sensor, compressUpload(encodeUpload(createSpool().upload(minutes))), 'zstd');
  await monitor.inbox.drain();
  const visitor = await server.signIn('viewer');
  const at = { from: utc(testMinute), to: utc(testMinute + 180) };

  const follow = (text: string, pattern: RegExp) =>
    pattern.exec(text)![1]!.replaceAll('&amp;', '&').split('#')[0]!;
  const traffic = await visitor.get(`/sites/${siteId}/traffic?range=custom&from=${at.from}&to=${at.to}`);
  const sum = await visitor.get(follow(traffic.text, /href="([^"]*\/traffic\/origin[^"]*)"/));
  assert.match(sum.text, /192\.0\.2\.10[\s\S]*7\.50 MB[\s\S]*2001:db8::a/, 'the sum of its addresses');
  const origin = await visitor.get(follow(sum.text, /href="([^"]*\/addresses\/192\.0\.2\.10[^"]*)"/));
  assert.match(
    origin.text,
    /hv-1[\s\S]*eth0[\s\S]*uplink[\s\S]*chosen[\s\S]*it saw the most bytes[\s\S]*br0[\s\S]*not added/,
  );

  const page = `/sites/${siteId}/addresses/192.0.2.10?range=custom&from=${at.from}&to=${at.to}`;
  const file = async (table: string) =>
    (
      JSON.parse((await visitor.get(`${page}&at=${at.from}&format=json&table=${table}`)).text) as {
        rows: Record<string, unknown>[];
      }
    ).rows;
  const rows = await file('origin');
  assert.deepEqual(
    rows.map((row) => [row.capture, row.is_chosen, row.reason, row.in_bytes, row.upload_sequences]),
    [
      ['eth0', true, 'most_bytes', 7_500_000, '1'],
      ['br0', false, null, 7_000_000, '1'],
    ],
  );
  const points = await file('points');
  assert.deepEqual(
    points.map((row) => [row.in_bps, row.minutes_observed]),
    [
      [null, 0],
      [1_000_000, 1],
      [1_000_000, 1],
    ],
    'newest first; gaps are null, never 0',
  );
  assert.deepEqual(
    (await file('applications')).map((row) => row.name),
    ['example.net'],
  );
  const { text } = await visitor.get(page);
  assert.match(text, /owned by 52:54:00:00:00:01/);
  assert.match(text, /3\.00 MB of it port scans by the sensors[\s\S]*500 kB of it port scans by the sensors/);
  const explored = await visitor.get(follow(text, /href="([^"]*\/explore\?[^"]*)"/));
  assert.match(explored.text, /address:192\.0\.2\.10/);
  assert.match(explored.text, /15\.0 MB/, 'the explorer has the bytes of the address in the same range');
  assert.match(text, /1 min not observed|1 minute not observed/);
  const whatIf = await visitor.get(follow(text, /href="([^"]*\/addresses\/192\.0\.2\.10\/what-if)"/));
  assert.match(whatIf.text, /<title>What if: 192\.0\.2\.10/, 'one click from the address');
  assert.match((await visitor.get(`/sites/${siteId}/addresses/2001:DB8:0::A`)).text, /owner unknown/);
  for (const wrong of ['192.0.2', 'x', '%3Cb%3E']) {
    assert.equal((await visitor.get(`/sites/${siteId}/addresses/${wrong}`)).status, 404);
  }
  const backwards = await visitor.get(`/sites/${siteId}/traffic/origin?from=${at.to}&to=${at.from}`);
  assert.equal(backwards.status, 422);
});

test('NET-2.4.2: a minute that may still arrive is shown as in progress, neither as a gap nor as a warning', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const made = await monitor.sensors.enrol({ token, host_name: 'hv-1', node: 'n1', sensor_version: '0.1.0' });
  const sensor = (await monitor.sensors.authenticate(made!.credential))!;
  const present = Math.floor(Date.now() / 60_000) * 60;
  const minutes = Array.from({ length: 20 }, (_, ago) =>
    captureMinute({ minute: present - 120 - ago * 60, hosts: [host('192.0.2.10', 7_500_000, 750_000)] }),
  );
  await monitor.inbox.receive(sensor, compressUpload(encodeUpload(createSpool().upload(minutes))), 'zstd');
  await monitor.inbox.drain();
  const visitor = await server.signIn('viewer');
  const { text } = await visitor.get(`/sites/${siteId}/addresses/192.0.2.10?range=15m`);
  assert.match(text, /in progress/);
  assert.doesNotMatch(text, /not observed/);
});
