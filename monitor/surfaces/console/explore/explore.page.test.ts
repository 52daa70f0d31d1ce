import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';

const local = '192.0.2.10';

/** One minute with two applications of one address, and a visitor. */
async function seed() {
  const server = await startMonitorServer();
  const { monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const names = { host_name: 'hv-1', node: 'hv-1', sensor_version: '0.1.0' };
  const { credential } = (await monitor.sensors.enrol({ token, ...names }))!;
  const sensor = (await monitor.sensors.authenticate(credential))!;
  const usage = (name: string, serverBytes: number) =>
    usageRow({ client: local, serverBytes, clientBytes: 100, name });
  const minute = captureMinute({
    hosts: [host(local, 900_000, 200)],
    usage: [usage('large.example', 800_000), usage('small.example', 100_000)],
  });
  await monitor.inbox.receive(sensor, compressUpload(encodeUpload(createSpool().upload([minute]))), 'zstd');
  await monitor.inbox.drain();
  const utc = (second: number) => `${new Date(second * 1000).toISOString().slice(0, 16)}Z`;
  const around = `range=custom&from=${utc(testMinute - 300)}&to=${utc(testMinute + 300)}`;
  return { server, path: `/sites/${siteId}/explore?${around}`, visitor: await server.signIn('viewer') };
}

test('the explorer shows the largest applications, and a value leads to itself alone', async () => {
  const { server, path, visitor } = await seed();
  await using _server = server;
  const page = await visitor.get(path);
  assert.equal(page.status, 200, page.text.slice(0, 400));
  assert.ok(page.text.indexOf('large.example') > 0);
  assert.ok(page.text.indexOf('large.example') < page.text.indexOf('small.example'), 'largest first');
  const href = /href="([^"]*q=app%3Alarge\.example[^"]*)"/.exec(page.text)?.[1]?.replaceAll('&amp;', '&');
  assert.ok(href, 'a value is a link with its filter');
  const narrowed = await visitor.get(href!);
  assert.equal(narrowed.status, 200);
  assert.doesNotMatch(narrowed.text, /small\.example/);
  assert.match(narrowed.text, /Remove app:large\.example/);
});

test('flows, files, the data of the chart and completion answer as well', async () => {
  const { server, path, visitor } = await seed();
  await using _server = server;
  assert.equal((await visitor.get(`${path}&tab=flows`)).status, 200);
  assert.equal((await visitor.get(`${path}&by=none&compare=previous`)).status, 200);
  const file = JSON.parse((await visitor.get(`${path}&table=application&format=json`)).text);
  const rows = file.rows as { application: string; in_bytes: number; share: number }[];
  assert.deepEqual(rows[0] && [rows[0].application, rows[0].in_bytes], ['large.example', 800_000]);
  const data = JSON.parse((await visitor.get(path.replace('/explore?', '/explore.json?'))).text);
  assert.equal(data.series[0].label, 'large.example');
  const complete = async (q: string) =>
    JSON.parse((await visitor.get(`${path.split('?')[0]}/complete?q=${encodeURIComponent(q)}`)).text);
  assert.deepEqual(await complete('-ser'), ['-server:']);
});

test('what is not understood is said with its text, escaped, and the rest is answered', async () => {
  const { server, path, visitor } = await seed();
  await using _server = server;
  const page = await visitor.get(
    `${path}&q=${encodeURIComponent('colour:<b> port:99999 app:large.example')}`,
  );
  assert.equal(page.status, 200);
  assert.match(page.text, /99999 is no port/);
  assert.doesNotMatch(page.text, /colour:<b>/);
  assert.match(page.text, /large\.example/);
});
