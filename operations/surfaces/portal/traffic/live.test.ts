import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { LivePoint } from '#contracts/admin-api/live.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { incidentOf } from '#operations/testing/incident-of.ts';
import { worldMinuteMs } from '#operations/testing/world-time.ts';

/** One moment for the whole file, at which the clock of the pages stands. */
const startedMs = worldMinuteMs;

let world: World;
let token: string;
before(async () => {
  world = await createWorld({ clockStartMs: startedMs });
  token = await world.createToken([
    'protect_live_ingest',
    'protect_telemetry_ingest',
    'ddos_incident_ingest',
  ]);
});
after(() => world[Symbol.asyncDispose]());

const bucketsAgo = (count: number) => startedMs - count * 10_000;

async function post(path: string, body: object): Promise<void> {
  const answer = await fetch(`${world.url}/api/admin/v1/protect/${path}/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ contract_version: 1, source_site_id: 1, cluster_ids: [world.clusterId] },
      ...body,
    }),
  });
  assert.equal(answer.status, 200, await answer.clone().text());
}

async function deliver(
  of: Allocation,
  buckets: readonly (Partial<LivePoint> & { ago: number })[],
): Promise<void> {
  const series = buckets.map(({ ago, ...more }) => ({
    timestamp: new Date(bucketsAgo(ago)).toISOString(),
    ...{ inbound_bps: 0, outbound_bps: 0, pps: 0, coverage: 1, observed_seconds: 10 },
    ...{ expected_bps: null, expected_pps: null, ddos_bps: null, ddos_pps: null },
    ...more,
  }));
  await post('live', {
    targets: [{ id: of.id, address: of.address, assigned_at: of.assignedAt, series }],
  });
}

async function createReader(name: string) {
  const customer = await world.createCustomer(name);
  const { serverId } = await world.deploy(customer.tenant, `${name.toLowerCase()}-1`);
  await world.backdate(serverId, '36 hours');
  const [first, second] = await world.addresses.listAllocationsOfServers([serverId]);
  const cookie = await world.signIn(customer.email);
  const get = (tail: string, as = cookie) =>
    fetch(`${world.url}/client/servers/${serverId}/traffic${tail}`, {
      headers: { cookie: as, accept: 'text/html' },
    });
  return { customer, serverId, first: first!, second: second!, cookie, get };
}

test('NET-2.5, NET-2.5.1: live.json has the delivered buckets as they were, and what was not observed is absent', async () => {
  const { first, second, get } = await createReader('Exact');
  await deliver(first, [
    { ago: 5, inbound_bps: 1234.5, outbound_bps: 7, pps: 1.5, coverage: null, observed_seconds: 4.25 },
    { ago: 3, inbound_bps: 0, outbound_bps: 0 },
  ]);
  await deliver(second, [{ ago: 3, inbound_bps: 100, outbound_bps: 50, pps: 9 }]);
  const answer = await get('/live.json');
  assert.equal(answer.headers.get('cache-control'), 'no-store');
  const bucketOf = (ago: number, of: Allocation, rates: object) => ({
    timestamp: new Date(bucketsAgo(ago)).toISOString(),
    address: of.address,
    ...{ inbound_bps: 0, outbound_bps: 0, pps: 0, coverage: 1, observed_seconds: 10 },
    ...rates,
  });
  assert.deepEqual(await answer.json(), {
    buckets: [
      bucketOf(5, first, {
        inbound_bps: 1234.5,
        outbound_bps: 7,
        pps: 1.5,
        coverage: null,
        observed_seconds: 4.25,
      }),
      bucketOf(3, first, {}),
      bucketOf(3, second, { inbound_bps: 100, outbound_bps: 50, pps: 9 }),
    ],
  });
  const one = await get(`/live.json?address=${encodeURIComponent(second.address)}`);
  assert.equal(((await one.json()) as { buckets: object[] }).buckets.length, 1);
  const chart = (await (await get('/live-chart.json')).json()) as {
    times: number[];
    stepMs: number;
    shape: string;
    series: { values: number[] }[];
    reasons: { fromMs: number; toMs: number; text: string }[];
  };
  const reason = (from: number, to: number, text: string) => [bucketsAgo(from), bucketsAgo(to), text];
  assert.deepEqual(
    chart.reasons.map(({ fromMs, toMs, text }) => [fromMs, toMs, text]),
    [
      reason(60, 5, 'no packets, or not observed'),
      reason(4, 3, 'no packets, or not observed'),
      reason(2, 0, 'not delivered yet'),
    ],
  );
  assert.deepEqual(
    [chart.times, chart.stepMs, chart.shape],
    [[bucketsAgo(5), bucketsAgo(3)], 10_000, 'bars'],
  );
  assert.deepEqual(
    chart.series.map(({ values }) => values),
    [
      [1234.5, 100],
      [7, 50],
    ],
    'addresses of a server are summed',
  );
});

test('a live chart without a single bucket has the minutes of the same time, and live.json stays empty', async () => {
  const { first, get } = await createReader('Minutes');
  const minute = (ago: number, inbound_bps: number | null) => ({
    timestamp: new Date(startedMs - ago * 60_000).toISOString(),
    ...{
      inbound_bps,
      outbound_bps: inbound_bps,
      pps: inbound_bps,
      coverage: inbound_bps === null ? null : 1,
    },
    ...{ expected_bps: null, expected_pps: null, ddos_bps: null, ddos_pps: null, applications: [] },
  });
  await post('telemetry', {
    targets: [
      {
        ...{ id: first.id, address: first.address, assigned_at: first.assignedAt },
        series: [minute(4, 800), minute(3, null)],
      },
    ],
  });
  const chart = (await (await get('/live-chart.json')).json()) as {
    times: number[];
    stepMs: number;
    series: { values: number[] }[];
    reasons: { fromMs: number; toMs: number; text: string }[];
  };
  assert.deepEqual(
    [chart.stepMs, chart.times[0], chart.series[0]!.values[0]],
    [60_000, startedMs - 240_000, 800],
  );
  assert.ok(
    chart.reasons.some(({ fromMs, toMs }) => fromMs <= startedMs - 180_000 && toMs > startedMs - 180_000),
    'a minute that was not observed says so',
  );
  assert.deepEqual(await (await get('/live.json')).json(), { buckets: [] });
  assert.match(await (await get('?range=live')).text(), /means of a minute, observed at the hypervisor/);
  await deliver(first, [{ ago: 2, inbound_bps: 5 }]);
  const ofBuckets = (await (await get('/live-chart.json')).json()) as { stepMs: number };
  assert.equal(ofBuckets.stepMs, 10_000, 'buckets win');
});

test('the Live range is on the Protect page, moves, can be paused, and says how fresh it is', async () => {
  const { first, get } = await createReader('Page');
  assert.match(await (await get('?range=1h')).text(), /href="[^"]*range=live" class="link-quiet">Live</);
  const empty = await (await get('?range=live')).text();
  assert.match(empty, /No live traffic in the last ten minutes/);
  assert.match(empty, /range=live" class="link-quiet" aria-current="page">Live</);
  await deliver(first, [{ ago: 1, inbound_bps: 2_000_000, outbound_bps: 1000 }]);
  const page = await (await get('?range=live')).text();
  assert.match(page, /Live: 2\.00 Mbit\/s in, 1\.00 kbit\/s out/);
  assert.match(page, /data-pause/);
  assert.match(page, /data-url="[^"]*live-chart\.json" data-refresh-seconds="3"/);
  const stale = await createReader('Stale');
  await deliver(stale.first, [{ ago: 9, inbound_bps: 1 }]);
  assert.match(await (await stale.get('?range=live')).text(), /No live traffic since .* unknown, not zero/s);
});

test('NET-2.5.2: an attack is marked in the live chart by its own times; the buckets have no attack rate', async () => {
  const { first, get } = await createReader('Attacked');
  await deliver(first, [{ ago: 2, inbound_bps: 1 }]);
  await post('incidents', { incidents: [incidentOf(first.address)] });
  const { areas } = (await (await get('/live-chart.json')).json()) as { areas: { label: string }[] };
  assert.deepEqual(
    areas.map(({ label }) => label),
    ['SYN flood, 25,000 packets/s now'],
  );
  const { buckets } = (await (await get('/live.json')).json()) as { buckets: object[] };
  assert.ok(buckets.every((one) => !('ddos_bps' in one)));
});

test('NET-1.6: with the protection views off there is no live page and no live data; they come back as they were', async () => {
  const { customer, first, serverId, get } = await createReader('Hidden');
  await deliver(first, [{ ago: 2, inbound_bps: 5 }]);
  const before = await (await get('/live.json')).json();
  const actor = (await world.accounts.customerActorOf(customer.owner.id))!;
  const settings = await world.protectSettings.find(actor, { serverId, tenantId: customer.tenant.id });
  await world.protectSettings.change(actor, serverId, { ...settings, viewsOn: false });
  for (const tail of ['?range=live', '/live.json', '/live-chart.json'])
    assert.equal((await get(tail)).status, 404, tail);
  await deliver(first, [{ ago: 1, inbound_bps: 6 }]);
  await world.protectSettings.change(actor, serverId, { ...settings, viewsOn: true });
  const { buckets } = (await (await get('/live.json')).json()) as { buckets: object[] };
  assert.equal(buckets.length, 2, 'what came meanwhile was stored');
  assert.deepEqual(buckets.slice(0, 1), (before as { buckets: object[] }).buckets);
});

test('another customer gets neither the live page nor its data', async () => {
  const { first, get } = await createReader('Owner');
  const { cookie } = await createReader('Stranger');
  await deliver(first, [{ ago: 2, inbound_bps: 5 }]);
  for (const tail of ['?range=live', '/live.json', '/live-chart.json'])
    assert.equal((await get(tail, cookie)).status, 404, tail);
});

test('NET-4.10: cards for live export and minute history tell attempt, receipt and newest observation, every 15 s', async () => {
  const { first, get } = await createReader('Cards');
  const card = async (title: string) => {
    const page = await (await get('')).text();
    assert.match(page, /data-refresh="15"/);
    return new RegExp(`<h3>${title}</h3>(.*?)</dl>`, 's')
      .exec(page)![1]!
      .replaceAll(/<[^>]+>/g, ' ')
      .replaceAll(/\s+/g, ' ');
  };
  assert.match(
    await card('Live export'),
    /Last attempt never Last confirmed receipt never Latest acknowledged observation none/,
  );
  assert.match(await card('Minute history'), /Last confirmed receipt never/);
  await deliver(first, [{ ago: 3 }, { ago: 2 }]);
  const text = await card('Live export');
  assert.match(text, /2 buckets of 1 address in the last delivery/);
  assert.doesNotMatch(text, /never|none Received/);
  assert.match(await card('Minute history'), /Last confirmed receipt never/, 'live traffic is no minute');
});
