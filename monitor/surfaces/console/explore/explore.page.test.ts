import assert from 'node:assert/strict';
import { get } from 'node:http';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer, type Visitor } from '#monitor/testing/server.ts';
import { patienceMs } from './explore.routes.ts';

const local = '192.0.2.10';
const deviceKey = 'br0|02:00:00:00:00:0a';
/** Sends less than the other exchanges, but more than it sends. */
const sender = '192.0.2.11';

/** One minute with two applications of one address, and a visitor. */
async function seed(options: Parameters<typeof startMonitorServer>[1] = {}) {
  const server = await startMonitorServer({}, options);
  const { monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const names = { host_name: 'hv-1', node: 'hv-1', sensor_version: '0.1.0' };
  const { credential } = (await monitor.sensors.enrol({ token, ...names }))!;
  const sensor = (await monitor.sensors.authenticate(credential))!;
  const usage = (name: string, serverBytes: number) =>
    usageRow({ client: local, serverBytes, clientBytes: 100, name });
  const minute = captureMinute({
    hosts: [
      { ...host(local, 900_000, 200, deviceKey), ownScan: { rxBytes: 3000, txBytes: 100, packets: 6 } },
      { ...host(sender, 100, 5000), ownScan: { rxBytes: 40, txBytes: 60, packets: 2 } },
    ],
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
  assert.match(narrowed.text, /Remove the filter app large\.example/);
});

test('tables stand in the order of any column, in the URL, with totals last and the order for screen readers', async () => {
  const { server, path, visitor } = await seed();
  await using _server = server;
  const tableOf = async (query: string) => {
    const { text } = await visitor.get(`${path}&by=application${query}`);
    const table = /<table[^>]*><caption[^>]*>Applications by[\s\S]*?<\/table>/.exec(text)![0];
    const names = [...table.matchAll(/>((?:large|small)\.example)</g)].map((one) => one[1]);
    const sorted = [...table.matchAll(/aria-sort="(\w+)"><a[^>]*>(\w+)/g)].map((one) =>
      one.slice(1).join(' '),
    );
    return { table, names, sorted };
  };
  const largest = await tableOf('');
  assert.deepEqual(largest.names, ['large.example', 'small.example']);
  assert.deepEqual(largest.sorted, ['descending Share']);
  const total = /<tfoot>[\s\S]*<\/tfoot>/.exec(largest.table)![0].replaceAll(/<[^>]+>/g, ' ');
  assert.match(total, /Total\s+900 kB\s+5\.20 kB/);
  const unclassified = /<tr[^>]*>(?:(?!<\/tr>)[\s\S])*Unclassified[\s\S]*?<\/tr>/.exec(largest.table)![0];
  assert.match(
    unclassified.replaceAll(/<[^>]+>/g, ' '),
    /Unclassified, 3\.20 kB of it port scans by the sensors\s+100 B\s+5\.00 kB\s+0\.6 %/,
    'what counters of addresses hold and no application is a row of its own',
  );
  for (const by of ['application', 'address', 'peer']) {
    const { text } = await visitor.get(`${path}&by=${by}`);
    const figures = text.replaceAll(/<[^>]+>/g, ' ');
    assert.match(figures, /905 kB in 10 min/, by);
    assert.match(
      figures,
      /In\s+900 kB\s[\s\S]*Out\s+5\.20 kB/,
      `${by}: the figures are those of all traffic`,
    );
  }
  assert.deepEqual((await tableOf('&application_sort=in&application_direction=asc')).names, [
    'small.example',
    'large.example',
  ]);
  const byName = await tableOf('&application_sort=name&application_direction=desc');
  assert.deepEqual(
    [byName.names, byName.sorted],
    [['small.example', 'large.example'], ['descending Application']],
  );
  for (const column of ['name', 'in', 'out', 'share'])
    assert.match(largest.table, new RegExp(`href="[^"]*application_sort=${column}`), column);
  assert.deepEqual(
    (await tableOf('&application_sort=evil')).sorted,
    ['descending Share'],
    'only columns count',
  );
});

test('what is largest in one direction is found among all values, not among the largest of both', async () => {
  const { server, path, visitor } = await seed();
  await using _server = server;
  const rows = async (query: string) =>
    JSON.parse((await visitor.get(`${path}&by=none&tables=address${query}&table=address&format=json`)).text)
      .rows as { address: string }[];
  const inwards = await rows('&address_sort=in');
  const outwards = await rows('&address_sort=out');
  assert.equal(inwards[0]!.address, local);
  assert.equal(outwards[0]!.address, sender);
});

test('NET-2.4.2: the explorer has the numbers of the page that led to it', async () => {
  const { server, path, visitor } = await seed();
  await using _server = server;
  const range = path.split('?')[1];
  const plain = (text: string) => text.replaceAll('&amp;', '&');
  const statsOf = (text: string) =>
    new Map(
      [...text.matchAll(/<dt>([^<]+)<\/dt><dd><span class="figure">([^<]+)</g)].map((one) => [
        one[1]!,
        one[2]!,
      ]),
    );
  const follow = async (from: string, href: RegExp) => {
    const page = await visitor.get(from);
    assert.equal(page.status, 200, `${from} ${page.text.slice(0, 300)}`);
    const to = href.exec(page.text)?.[1];
    assert.ok(to, `${from} leads to the explorer`);
    const explorer = await visitor.get(plain(to));
    assert.equal(explorer.status, 200);
    return { page: statsOf(page.text), explorer: statsOf(explorer.text), text: page.text, to: plain(to) };
  };
  const base = `/sites/${server.siteId}`;
  const button = /href="(\/sites\/\d+\/explore\?[^"]*)"[^>]*>Explore</;
  for (const named of [range, 'range=1h', 'range=24h', '']) {
    const address = await follow(`${base}/addresses/${local}?${named}`, button);
    assert.equal(address.explorer.get('In'), address.page.get('In, all'), named);
    assert.equal(address.explorer.get('Out'), address.page.get('Out, all'), named);
    assert.equal(address.explorer.get('In'), '900 kB', 'and they are known');
    const [device] = await server.monitor.devices.list(server.siteId, 1);
    const ofDevice = await follow(`${base}/devices/${device!.id}?${named}`, button);
    assert.equal(ofDevice.explorer.get('In'), ofDevice.page.get('WAN in'), named);
    assert.equal(ofDevice.explorer.get('Out'), ofDevice.page.get('WAN out'), named);
    assert.equal(ofDevice.explorer.get('In'), '900 kB');
    for (const view of ['outbound', 'all']) {
      const open = `${base}/applications?${named}&view=${view}&open=6.443.large.example`;
      const application = await follow(open, /href="(\/sites\/\d+\/explore\?[^"]*)"[^>]*>by server</);
      const { rows } = JSON.parse((await visitor.get(`${open}&table=applications&format=json`)).text);
      const row = rows.find((one: { name: string }) => one.name === 'large.example');
      const file = JSON.parse((await visitor.get(`${application.to}&table=server&format=json`)).text);
      const sum = (read: (one: Record<string, number>) => number) =>
        file.rows.reduce((all: number, one: Record<string, number>) => all + read(one), 0);
      assert.deepEqual(
        [sum((one) => one.in_bytes!), sum((one) => one.out_bytes!)],
        [row.in_bytes, row.out_bytes],
        `${view} ${named}`,
      );
    }
    const site = await follow(`${base}/traffic?${named}`, button);
    const chartOf = async (url: string) => {
      const { series, times } = JSON.parse((await visitor.get(url)).text);
      const line = (label: string) => series.find((one: { label: string }) => one.label === label).values;
      return { in: line('In'), out: line('Out'), times };
    };
    const [explored, shown] = await Promise.all([
      chartOf(site.to.replace('/explore?', '/explore.json?')),
      chartOf(`${base}/traffic.json?${named}`),
    ]);
    if (named !== 'range=24h') assert.deepEqual(explored, shown, named);
    assert.ok(explored.in.some((value: number | null) => value));
  }
});

test('the explorer says how much the sensors’ own port scans are, and nothing that was not counted', async () => {
  const { server, path, visitor } = await seed();
  await using _server = server;
  const note = async (query: string) => {
    const { status, text } = await visitor.get(`${path}&${query}`);
    assert.equal(status, 200);
    return /Port scans by the sensors[^<]*/.exec(text)?.[0];
  };
  const counted = (amount: string) =>
    `Port scans by the sensors are ${amount} of the counters of addresses. They are no application.`;
  // Counters of both addresses hold 5,100 bytes more than applications.
  assert.equal(await note('by=application&tables=server,customer'), counted('3.20 kB'));
  assert.equal(await note('by=server&tables=customer,address'), counted('3.20 kB'));
  assert.equal(await note('by=server&tables=customer,address&measure=packets'), counted('8 packets'));
  assert.equal(await note(`q=address:${local}&by=application&tables=port,server`), counted('3.10 kB'));
  assert.equal(await note(`q=-address:${local}&by=none&tables=server`), counted('100 B'));
  assert.equal(
    await note('q=app:large.example&by=server&tables=port,peer'),
    undefined,
    'applications alone were read',
  );
  assert.equal(await note('q=address:192.0.2.99&by=server&tables=address'), undefined, 'none was counted');
});

test('the period before is read once, also where both directions are drawn beside it', async () => {
  const { server, path, visitor } = await seed();
  await using _server = server;
  const { facts } = server.monitor;
  const usual = facts.exploreTogether.bind(facts);
  const read: string[] = [];
  facts.exploreTogether = (reading, views) => {
    read.push(`${reading.source} from ${(reading.fromMinute - testMinute) / 60}`);
    return usual(reading, views);
  };
  const [from, to] = [300, 900].map((after) => new Date((testMinute + after) * 1000).toISOString());
  const query = `range=custom&from=${from!.slice(0, 16)}Z&to=${to!.slice(0, 16)}Z&by=none&compare=previous`;
  const base = path.split('?')[0]!;
  const chart = await visitor.get(`${base}.json?${query}`);
  assert.deepEqual(read, ['addresses from 5', 'addresses from -5']);
  const { series } = JSON.parse(chart.text) as {
    series: { label: string; values: (number | null)[]; isPrevious?: boolean }[];
  };
  const before = series.filter((one) => one.isPrevious);
  // A chart's values have six digits.
  const bytesOf = (rate: number) => Math.round((rate * 60) / 8 / 100) * 100;
  assert.deepEqual(
    before.map((one) => [one.label, bytesOf(one.values.find((value) => value)!)]),
    [
      ['Out, previous', 5200],
      ['In, previous', 900_100],
    ],
  );
  read.length = 0;
  assert.equal((await visitor.get(`${base}?${query}&tables=server,address`)).status, 200);
  assert.deepEqual(read, ['addresses from 5', 'addresses from -5']);
});

test('tables beside a chart in steps of ten minutes read a day by the hour', async () => {
  const { server, path, visitor } = await seed();
  await using _server = server;
  const { facts } = server.monitor;
  const usual = facts.exploreTogether.bind(facts);
  const read: string[] = [];
  facts.exploreTogether = (reading, views) => {
    read.push(...views.map(({ by, stepSeconds }) => `${reading.source} ${by} ${stepSeconds}`));
    return usual(reading, views);
  };
  await visitor.get(`${path.split('?')[0]}?range=24h&step=600&by=application&q=address:${local}`);
  assert.deepEqual(read.sort(), [
    // What is unclassified follows from the sum of everything, of the same reading.
    'addresses  null',
    'addresses server 3600',
    'applications application 600',
    'pairs peer 3600',
  ]);
});

test('a filter by server is shown with the name of the server', async () => {
  const { server, path, visitor } = await seed();
  await using _server = server;
  await server.database.pool.query(
    `insert into inventory_vms (cluster_id, vm_id, name, state, updated_at) values (7, 42, 'name-of-the-filtered-server', 'running', svc_now())`,
  );
  const { text } = await visitor.get(`${path}&q=server:7/42`);
  assert.match(text, /name-of-the-filtered-server/);
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
  const ports = Array.from({ length: 3_000 }, (_, i) => i).join(',');
  const { text: long } = await visitor.get(`${path}&q=port:${ports}`);
  assert.match(long, /at most 100 filter values/);
  assert.ok(long.length < 1_000_000, `15 KB of filters make a page of ${long.length} characters`);
});

test('an empty range says to choose another one, and to remove a filter only where there is one', async () => {
  const { server, visitor } = await seed();
  await using _server = server;
  const path = `/sites/${server.siteId}/explore?range=custom&from=2026-01-01T00:00Z&to=2026-01-01T01:00Z`;
  const { text } = await visitor.get(path);
  assert.match(text, /No traffic was observed in this range\. Choose a longer one\./);
  assert.doesNotMatch(text, /Remove a filter/);
  const filtered = (await visitor.get(`${path}&q=app:small.example`)).text;
  assert.match(
    filtered,
    /No traffic of this range passes the filters\. Remove a filter or choose a longer range\./,
  );
  assert.doesNotMatch(filtered, /Choose a longer one/);
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
  assert.match(opened.text, /Remove the filter app large\.example/);
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

interface PageAnswer {
  status: number;
  refresh: string | undefined;
  text: string;
}

/** Asks as a browser does that goes to a page; `fetch` always says that a script asks. */
const goTo = (server: MonitorServer, visitor: Visitor, path: string) =>
  new Promise<PageAnswer>((resolve, reject) => {
    const headers = { accept: 'text/html', cookie: visitor.cookie, 'sec-fetch-mode': 'navigate' };
    const sent = get(`${server.url}${path}`, { headers }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () =>
        resolve({
          status: answer.statusCode!,
          refresh: answer.headers.refresh as string | undefined,
          text: Buffer.concat(chunks).toString(),
        }),
      );
    });
    sent.on('error', reject);
  });

test('an answer that takes long shows progress, comes by itself, and can be stopped', async () => {
  const clock = createTestClock(Date.now());
  const { server, path, visitor } = await seed({ clock });
  await using _server = server;
  const { facts } = server.monitor;
  const usual = facts.exploreTogether.bind(facts);
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  facts.exploreTogether = async (reading, views) => {
    await released;
    return usual(reading, views);
  };
  /** Lets time pass until the request has lost its patience. */
  const lose = async (asked: Promise<PageAnswer>) => {
    let isAnswered = false;
    const answer = asked.finally(() => {
      isAnswered = true;
    });
    while (!isAnswered) {
      await clock.advance(patienceMs);
      await new Promise((done) => setImmediate(done));
    }
    return answer;
  };
  const slow = await lose(goTo(server, visitor, path));
  const { text } = slow;
  assert.deepEqual([slow.status, slow.refresh], [200, '1']);
  assert.match(text, /<progress/);
  assert.match(text, /id="explore-q"/, 'the filters can be changed');
  const stop = /href="([^"]*stopped=1[^"]*)"/.exec(text)![1]!.replaceAll('&amp;', '&');
  const stopped = await goTo(server, visitor, stop);
  assert.equal(stopped.refresh, undefined);
  assert.match(stopped.text, /Stopped\. Nothing is read/);
  const again = goTo(server, visitor, path);
  release();
  const answer = (await again).text;
  assert.match(answer, /large\.example/);
  assert.doesNotMatch(answer, /<progress|stopped=1/);
});

test('a query that is refused says what to narrow, beside its filters; its chart and the read API say it as well', async () => {
  const { server, path, visitor } = await seed();
  await using _server = server;
  const message = 'Choose a shorter range.';
  server.monitor.facts.exploreTogether = () => Promise.reject(new CodedError('facts.too_slow', message));
  const page = await goTo(server, visitor, `${path}&q=app:large.example`);
  const { text } = page;
  assert.equal(page.status, 422);
  assert.match(text, /This takes too long[\s\S]*Choose a shorter range\./);
  assert.match(text, /value="app:large\.example"/);
  const chart = await visitor.get(path.replace('/explore?', '/explore.json?'));
  assert.deepEqual([chart.status, chart.text.includes(message)], [422, true]);
  const { token } = await server.monitor.readTokens.create(systemActor, server.siteId, {
    name: 't',
    days: '1',
  });
  const api = await fetch(`${server.url}/api/v1/query`, { headers: { authorization: `Bearer ${token}` } });
  const { error } = (await api.json()) as { error: { reason: string; message: string } };
  assert.deepEqual([api.status, error.reason, error.message], [422, 'too_slow', message]);
});
