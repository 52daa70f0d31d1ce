import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, usageRow } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer, type Visitor } from '#monitor/testing/server.ts';

let server: MonitorServer;
let visitor: Visitor;

/**
 * Twelve devices with seven of fourteen servers each, the first pair the busiest; one device hosts, one talks to
 * another.
 */
before(async () => {
  server = await startMonitorServer();
  const { monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const made = await monitor.sensors.enrol({ token, host_name: 'hv-1', node: 'n1', sensor_version: '0.1.0' });
  const sensor = (await monitor.sensors.authenticate(made!.credential))!;
  const hosts = Array.from({ length: 12 }, (_, i) =>
    host(`192.0.2.${10 + i}`, 9_000, 900, `br0|52:54:00:00:00:${10 + i}`),
  );
  const usage = hosts.flatMap(({ address }, i) =>
    Array.from({ length: 7 }, (_, k) =>
      usageRow({
        client: address,
        server: `198.51.100.${1 + ((i + k) % 14)}`,
        serverBytes: i + k === 0 ? 90_000 : 1_000,
      }),
    ),
  );
  const minute = captureMinute({
    hosts,
    usage: [
      ...usage,
      usageRow({ client: '203.0.113.9', server: '192.0.2.10', direction: 'inbound', name: 'shop.example' }),
      usageRow({
        client: '192.0.2.10',
        server: '192.0.2.11',
        direction: 'internal',
        serverPort: 5432,
        name: '192.0.2.11',
        evidence: 'none',
      }),
    ],
    totals: { kernelDropped: 25, detailTruncated: 4, parserDropped: 3 },
  });
  await monitor.inbox.receive(sensor, compressUpload(encodeUpload(createSpool().upload([minute]))), 'zstd');
  await monitor.inbox.drain();
  visitor = await server.signIn('viewer');
});
after(() => server[Symbol.asyncDispose]());

const path = (query: string) => `/sites/${server.siteId}/applications?range=1h&${query}`;
const open = encodeURIComponent('6.443.example.net');

test('the chart says why it has no values before the first sensor', async () => {
  const { text } = await visitor.get(path(''));
  assert.match(text, /before the first sensor was enrolled/);
  const chart = JSON.parse((await visitor.get(`/sites/${server.siteId}/applications.json?range=1h`)).text);
  assert.match(JSON.stringify(chart.reasons), /before the first sensor was enrolled/);
});

test('NET-2.2.1: four views, Internet / Outbound by default', async () => {
  const names = async (query: string) =>
    (
      JSON.parse((await visitor.get(path(`format=json&table=applications&${query}`))).text) as {
        rows: { name: string }[];
      }
    ).rows
      .map((row) => row.name)
      .sort();
  const { text } = await visitor.get(`/sites/${server.siteId}/applications`);
  const views = [...text.matchAll(/view=(\w+)"[^>]*class="link-quiet"( aria-current="page")?>([^<]+)</g)];
  assert.deepEqual(
    views.map(([, view, current, label]) => [view, current !== undefined, label]),
    [
      ['outbound', true, 'Internet / Outbound'],
      ['inbound', false, 'Inbound'],
      ['internal', false, 'LAN / Internal'],
      ['all', false, 'All'],
    ],
  );
  assert.deepEqual(await names(''), ['example.net']);
  assert.deepEqual(await names('view=inbound'), ['shop.example']);
  assert.deepEqual(await names('view=internal'), ['PostgreSQL']);
  assert.deepEqual(await names('view=all'), ['PostgreSQL', 'example.net', 'shop.example']);
  assert.deepEqual(await names('view=all&name=SHOP'), ['shop.example']);
});

test('NET-2.2.2: a row expands to ten destinations and ten devices with counts of all, also without scripts', async () => {
  const folded = await visitor.get(path(''));
  const top = /class="has-tip"[^>]*>(.*?)<span class="tip"/.exec(folded.text)![1]!.replace(/<[^>]*>/g, '');
  assert.equal(top, '192.0.2.10 → 198.51.100.1 and 83 more', 'the busiest pair');
  assert.doesNotMatch(folded.text, /class="facets"/);
  const href = /href="([^"#]*open=6\.443\.example\.net[^"#]*)/
    .exec(folded.text)![1]!
    .replaceAll('&amp;', '&');
  const { text } = await visitor.get(href);
  const facet = (title: string) =>
    new RegExp(`<h2>${title}</h2><span class="hint">([^<]*)</span>[\\s\\S]*?<ul>(.*?)</ul>`).exec(text)!;
  for (const [title, count, lines] of [
    ['Destinations', '10 of 14', 10],
    ['Devices', '10 of 12', 10],
    ['Connections', '5 of 84', 5],
  ] as const) {
    const found = facet(title);
    assert.equal(found[1], count, title);
    assert.equal(found[2]!.split('<li>').length - 1, lines, title);
  }
  assert.match(facet('Devices')[2]!, /href="\/sites\/\d+\/devices\/\d+"/);
  assert.match(text, /aria-expanded="true"/);
  const csv = await visitor.get(path(`open=${open}&format=csv&table=destinations`));
  assert.equal(csv.text.split('\r\n').length, 12);
  assert.equal(csv.headers.get('x-more-rows'), 'true', 'a limited list says so');
});

test('NET-2.2.2: hover or keyboard focus on a row shows at most five pairs', async () => {
  const { text } = await visitor.get(path(''));
  const tip = /class="has-tip" tabindex="0" aria-label="[^"]*" hx-get="([^"]*)" hx-trigger="([^"]*)"/.exec(
    text,
  )!;
  assert.match(tip[2]!, /mouseenter.*focus/);
  const answer = await visitor.get(tip[1]!.replaceAll('&amp;', '&'));
  assert.equal(answer.status, 200);
  assert.equal(answer.text.split('<li>').length - 1, 5);
  assert.match(answer.text, /and 79 more/);
  assert.doesNotMatch(answer.text, /<html/);
});

test('an expanded row leads to the explorer, with its application, port, transport and direction as the filter', async () => {
  const { text } = await visitor.get(path(`open=${open}`));
  const hrefs = [...text.matchAll(/href="([^"]*\/explore\?[^"]*)"/g)].map((one) =>
    one[1]!.replaceAll('&amp;', '&'),
  );
  const filter = 'app:example.net port:443 transport:6 direction:outbound';
  assert.deepEqual(
    hrefs.map((href) => new URL(href, 'http://x').searchParams).map((one) => [one.get('q'), one.get('by')]),
    [
      [filter, 'server'],
      [filter, 'peer'],
    ],
  );
  const explored = await visitor.get(hrefs[0]!);
  assert.equal(explored.status, 200);
  assert.match(explored.text, /app:example\.net/);
});

test('NET-2.2.2: without stored connections devices are labelled fallback attribution', async () => {
  await server.database.pool.query('delete from endpoint_pairs');
  const { text } = await visitor.get(path(`open=${open}`));
  assert.match(text, /<h2>Devices, fallback attribution<\/h2>/);
  assert.match(text, /class="unknown">not stored</);
});

test('NET-2.2.6: the page shows coverage, attribution ratios and every kind of loss', async () => {
  const { text } = await visitor.get(path(''));
  assert.match(text, /Partial: packets were lost before they could be classified/);
  assert.match(text, /3 packets could not be parsed/);
  assert.match(text, /25 packets were dropped/);
  assert.match(text, /4 details were dropped/);
  for (const label of ['Packets seen', 'Named by evidence', 'Named by port', 'With a known device']) {
    assert.match(text, new RegExp(`<dt>${label}</dt>.*?[\\d.]+ %`), label);
  }
});

test('a forged row id shows no row, and names are escaped', async () => {
  for (const wrong of ['x', '6.443', '999999.1.a', '6.443.unknown', '6..<script>alert(1)</script>']) {
    const { status, text } = await visitor.get(path(`open=${encodeURIComponent(wrong)}`));
    assert.equal(status, 200, wrong);
    assert.doesNotMatch(text, /<script>alert|class="facets"/, wrong);
  }
});
