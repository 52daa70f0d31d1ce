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

test('a view is saved under a name for everyone of the site, opened, replaced and removed; viewers only open it', async () => {
  const { server, path, visitor } = await seed();
  await using _server = server;
  const views = `${path.split('?')[0]}/views`;
  const operator = await server.signIn('operator');
  const query = `${path.split('?')[1]}&q=app:large.example&by=peer&saved=1&evil=%22%3E`;
  const saved = await operator.post(views, { name: ' Large <one> ', query });
  assert.equal(saved.status, 303);
  const href = saved.headers.get('location')!.replace('&saved=1', '');
  const values = new URL(href, 'http://x').searchParams;
  assert.deepEqual([...values.keys()], ['q', 'range', 'from', 'to', 'by'], 'nothing else is kept');
  const shown = await visitor.get(path);
  assert.match(shown.text, /Large &lt;one&gt;/);
  assert.ok(shown.text.includes(href.replaceAll('&', '&amp;')), 'a link to the view');
  assert.doesNotMatch(shown.text, /Save this view|Remove Large/);
  const opened = await visitor.get(href);
  assert.match(opened.text, /Remove app:large\.example/);
  assert.match(opened.text, /<strong>Large &lt;one&gt;<\/strong>/, 'it is marked');

  assert.equal((await operator.post(views, { name: 'LARGE <ONE>', query: 'by=server' })).status, 303);
  const [view, ...others] = await server.monitor.savedViews.list(server.siteId);
  assert.deepEqual([view!.name, view!.query, others.length], ['LARGE <ONE>', 'by=server', 0]);
  const remove = `${views}/${view!.id}/remove`;
  assert.equal((await visitor.post(remove)).status, 403);
  assert.equal((await visitor.post(views, { name: 'mine', query: '' })).status, 403);
  const other = await server.monitor.sites.create(systemActor, 'Other');
  assert.equal((await operator.post(remove.replace(/sites\/\d+/, `sites/${other.id}`))).status, 404);
  assert.equal((await operator.post(views, { name: ' ', query: '' })).status, 422);
  assert.equal((await operator.post(views, { name: 'long', query: `q=${'a'.repeat(4_100)}` })).status, 422);
  assert.equal((await operator.post(remove)).status, 303);
  assert.deepEqual(await server.monitor.savedViews.list(server.siteId), []);
});

test('a site has at most a hundred saved views, also when they are saved at once', async () => {
  const { server } = await seed();
  await using _server = server;
  const { savedViews } = server.monitor;
  const results = await Promise.allSettled(
    Array.from({ length: 110 }, (_, n) =>
      savedViews.save(systemActor, server.siteId, { name: `view ${n}`, query: '' }),
    ),
  );
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 100);
  assert.equal((await savedViews.list(server.siteId)).length, 100);
  const replaced = await savedViews.save(systemActor, server.siteId, {
    name: (await savedViews.list(server.siteId))[0]!.name,
    query: 'by=peer',
  });
  assert.equal(replaced.query, 'by=peer', 'one that is there can still be replaced');
});
