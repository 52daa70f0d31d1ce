import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Incident } from '#contracts/admin-api/incidents.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import * as incidents from '#operations/testing/incident-of.ts';
import { visit } from '#operations/testing/visit.ts';
import { worldNowMs, worldStartMs } from '#operations/testing/world-time.ts';

/** The clock of the pages stands still. */
const startMs = worldStartMs;
const secondsAgo = (seconds: number) => incidents.secondsAgo(seconds, startMs);
const incidentOf = (address: string, more: Partial<Incident> = {}) =>
  incidents.incidentOf(address, more, startMs);
const recovered = (incident: Incident, more: Partial<Incident> = {}) =>
  incidents.recovered(incident, more, startMs);

let world: World;

before(async () => {
  world = await createWorld({ clockStartMs: startMs });
});
after(() => world[Symbol.asyncDispose]());

const deliver = (...incidents: Incident[]) => world.deliverIncidents(...incidents);

/** A signed-in customer with a server that is two days old. */
async function createReader(name: string) {
  const customer = await world.createCustomer(name);
  const { serverId } = await world.deploy(customer.tenant, name.toLowerCase().replace(' ', '-'));
  await world.backdate(serverId, '2 days');
  const [first] = await world.addresses.listAllocationsOfServers([serverId]);
  const visitor = await visit(world, customer.email, '/client/settings/');
  const path = `/client/servers/${serverId}/protect`;
  const settings = (fields: Record<string, string>) => visitor.post(`${path}/settings`, fields);
  const trafficPath = `/client/servers/${serverId}/traffic`;
  return { ...customer, ...visitor, serverId, path, trafficPath, settings, address: first!.address };
}

/** The text of a page, without its elements. */
const textOf = (page: string) => page.replace(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');

interface IncidentsFile {
  incidents: Record<string, unknown>[];
  information: Record<string, unknown>[];
}

const read = async (reader: { get(path: string): Promise<Response>; path: string }) =>
  (await (await reader.get(`${reader.path}/incidents.json`)).json()) as IncidentsFile;

test('incidents.json has attacks and information apart, newest first, with the fields of the wire and no source', async () => {
  const reader = await createReader('Wire');
  const old = {
    started_at: secondsAgo(7200),
    detected_at: secondsAgo(7197),
    last_observed_at: secondsAgo(7000),
  };
  const ended = recovered(incidentOf(reader.address, old), { recovered_at: secondsAgo(6940) });
  const now = incidentOf(reader.address);
  const download = incidentOf(reader.address, { class: 'high_volume', severity: 'info' });
  assert.deepEqual(await deliver(ended, now, download), ['applied', 'applied', 'applied']);
  const { incidents, information } = await read(reader);
  assert.deepEqual(
    incidents.map(({ id }) => id),
    [now.id, ended.id],
  );
  assert.deepEqual(
    information.map(({ id, severity }) => [id, severity]),
    [[download.id, 'info']],
  );
  const { actions, ...fields } = incidents[1]!;
  assert.deepEqual(fields, {
    id: ended.id,
    class: 'syn_flood',
    severity: 'attack',
    direction: 'inbound',
    state: 'recovered',
    started_at: ended.started_at,
    detected_at: ended.detected_at,
    last_observed_at: ended.last_observed_at,
    recovered_at: ended.recovered_at,
    peak: ended.peak,
    address: reader.address,
  });
  const [alerted] = actions as { kind: string; at: string; ended_at: null }[];
  assert.deepEqual([alerted!.kind, alerted!.ended_at], ['alerted', null]);
  assert.ok(Date.parse(alerted!.at) >= worldStartMs && Date.parse(alerted!.at) <= worldNowMs());
});

/** Everything below the Protect tab. */
const tails = [
  '',
  '/attacks',
  '/incidents',
  '/incidents.json',
  '/chart.json',
  '/live.json',
  '/live-chart.json',
  '/minutes.json',
  '/minutes.csv',
];
/** The same data of the Traffic tab, which itself stays for the usage. */
const trafficTails = [
  '?range=live',
  '/chart.json',
  '/live.json',
  '/live-chart.json',
  '/minutes',
  '/minutes.json',
  '/minutes.csv',
];

test('NET-1.6: switched off, pages and JSON are 404 and the tab tells how to turn them on; on again, all that was observed is there', async () => {
  const reader = await createReader('Switch');
  const incident = incidentOf(reader.address);
  await deliver(incident);
  assert.equal((await reader.settings({ views: 'off', attack_webhook: 'on' })).status, 303);
  const all = [
    ...[...tails, `/incidents/${incident.id}`].map((tail) => `${reader.path}${tail}`),
    ...trafficTails.map((tail) => `${reader.trafficPath}${tail}`),
  ];
  for (const path of all) assert.equal((await reader.get(path)).status, 404, path);
  const usage = await reader.page(reader.trafficPath);
  assert.match(usage, /Protection views are off/);
  assert.doesNotMatch(usage, /id="(minutes|applications|traffic)"/);
  assert.doesNotMatch(textOf(usage), /syn/i);
  assert.doesNotMatch(await reader.page('/client/'), /under attack/);
  const off = await reader.page(reader.path);
  assert.match(off, /Protection views are off/);
  assert.match(off, /Turn on protection views/);
  assert.doesNotMatch(textOf(off), /syn/i);
  assert.deepEqual(await deliver(recovered(incident)), ['applied'], 'ingestion goes on');
  assert.equal((await reader.settings({ views: 'on', attack_webhook: 'on' })).status, 303);
  for (const path of all) assert.equal((await reader.get(path)).status, 200, path);
  assert.equal((await read(reader)).incidents[0]!.state, 'recovered');
  const page = await reader.page(reader.path);
  assert.match(page, /name="attack_webhook"[^>]* checked>/, 'what was chosen is kept');
  assert.doesNotMatch(page, /name="attack_mail"[^>]* checked>/);
});

test('NET-1.6: a change of the settings is audited for the customer, and one that changes nothing is not', async () => {
  const reader = await createReader('Audited');
  await reader.settings({ views: 'on', attack_mail: 'on', attack_webhook: 'on' });
  await reader.settings({ views: 'on', attack_mail: 'on' });
  const { rows } = await world.database.pool.query<{ operation: string; before: object; after: object }>(
    `select operation, before, after from audit_entries where operation like 'protect.%' and subject_id = $1`,
    [String(reader.serverId)],
  );
  assert.deepEqual(rows, [
    {
      operation: 'protect.change_settings',
      before: { attackWebhook: true },
      after: { attackWebhook: false },
    },
  ]);
});

test('settings are refused without the session’s token, for another customer’s server, and with an unknown choice', async () => {
  const [own, other] = [await createReader('Own'), await createReader('Other')];
  const without = await own.settings({ views: 'off', csrf_token: '' });
  assert.equal(without.status, 403);
  assert.equal((await own.post(`${other.path}/settings`, { views: 'off' })).status, 404);
  assert.equal((await own.settings({ views: 'maybe' })).status, 422);
  for (const reader of [own, other]) assert.equal((await reader.get(reader.path)).status, 200);
});

test('another customer’s incidents are a page that does not exist', async () => {
  const [own, other] = [await createReader('Reader'), await createReader('Stranger')];
  const incident = incidentOf(other.address);
  await deliver(incident);
  for (const tail of [...tails, `/incidents/${incident.id}`])
    assert.equal((await own.get(`${other.path}${tail}`)).status, 404, tail);
  // Below the reader's own server, too.
  assert.equal((await own.get(`${own.path}/incidents/${incident.id}`)).status, 404);
  assert.doesNotMatch(await own.page('/client/'), /under attack/);
  assert.deepEqual(await read(own), { incidents: [], information: [] });
});

test('while an attack goes on the page says since when, what and how hard, asks again every five seconds, and draws it', async () => {
  const reader = await createReader('Attacked');
  const incident = incidentOf(reader.address);
  await deliver(incident);
  const since = incident.started_at.slice(11, 19);
  const page = await reader.page(reader.path);
  const headline = `Under attack since ${since} UTC: SYN flood, 25,000 packets/s now, peak 31,000 packets/s`;
  assert.ok(textOf(page).includes(headline), textOf(page));
  assert.match(
    page,
    /id="attacks-now" class="refreshing" data-refresh="5" data-url="[^"]*\/protect\/attacks"/,
  );
  const banner = await reader.page(`${reader.path}/attacks`);
  assert.ok(textOf(banner).includes(headline));
  assert.ok(banner.length < 3_000, 'the part alone');
  const chart = (await (await reader.get(`${reader.path}/chart.json?range=15m`)).json()) as {
    areas: object[];
  };
  const area = { fromMs: Date.parse(incident.started_at), toMs: null, tone: 'bad' };
  assert.deepEqual(chart.areas, [{ ...area, label: 'SYN flood, 25,000 packets/s now' }]);
  assert.match(textOf(await reader.page('/client/')), /under attack/);
  assert.match(textOf(await reader.page(`/client/servers/${reader.serverId}`)), /Under attack\./);
  assert.ok(
    textOf(await reader.page(`${reader.trafficPath}?range=live`)).includes(headline),
    'the Live range',
  );
});

test('while an attack is dropped at the hypervisor its page says how much, and since when', async () => {
  const reader = await createReader('Dropped');
  const action = { kind: 'dropped', at: secondsAgo(20), ended_at: null, dropped_pps: 24_870 } as const;
  const incident = incidentOf(reader.address, { actions: [action] });
  await deliver(incident);
  const line = `Dropped at the hypervisor: 24,870 packets/s since ${action.at.slice(11, 19)} UTC`;
  const page = (of = incident) => reader.page(`${reader.path}/incidents/${of.id}`).then(textOf);
  assert.ok((await page()).includes(line));
  const sent = incidentOf(reader.address, { direction: 'outbound', actions: [action] });
  await deliver(sent);
  assert.match(await page(sent), /Dropped at the hypervisor: [\s\S]*Your server attacks others/);
  await deliver({ ...incident, revision: 2, actions: [{ ...action, ended_at: secondsAgo(1) }] });
  const after = await page();
  assert.doesNotMatch(after, /Dropped at the hypervisor/);
  assert.match(after, /Attack traffic was dropped at the hypervisor/);
});

test('NET-3.2: without news the page says since when; it does not say that the attack has ended, and its area ends there', async () => {
  const reader = await createReader('Unheard');
  const last = secondsAgo(120);
  const started = secondsAgo(400);
  const stale = { state: 'stale', current: null, started_at: started, last_observed_at: last } as const;
  const incident = incidentOf(reader.address, stale);
  await deliver(incident);
  const text = textOf(await reader.page(reader.path));
  assert.ok(
    text.includes(`No data from the sensor since ${last.slice(11, 19)} UTC. The attack may go on.`),
    text,
  );
  assert.doesNotMatch(text, /[Rr]ecovered|Ended|has ended/);
  const chart = (await (await reader.get(`${reader.path}/chart.json?range=15m`)).json()) as {
    areas: { toMs: number }[];
  };
  assert.equal(chart.areas[0]!.toMs, Date.parse(last));
  // The monitor delivers nothing any more, so the page goes by the time of the last observation.
  const silent = await createReader('Unfed');
  await deliver(
    incidentOf(silent.address, { last_observed_at: secondsAgo(200), started_at: secondsAgo(300) }),
  );
  assert.match(textOf(await silent.page(silent.path)), /No data from the sensor since/);
});

test('after the recovery the page is quiet, the list has the attack, and its page has times, parts and measures', async () => {
  const reader = await createReader('Ended');
  const incident = incidentOf(reader.address, {
    actions: [{ kind: 'blackholed', at: secondsAgo(40), ended_at: secondsAgo(2) }],
    vectors: [
      { class: 'syn_flood', packets_share: 0.8, bytes_share: 0.6, ports: [80, 443] },
      { class: 'udp_flood', packets_share: 0.2, bytes_share: 0.4, ports: [] },
    ],
  });
  await deliver(incident, recovered(incident));
  const text = textOf(await reader.page(reader.path));
  assert.doesNotMatch(text, /Under attack|No data from/);
  assert.match(text, /SYN flood . recovered inbound/);
  const page = textOf(await reader.page(`${reader.path}/incidents/${incident.id}`));
  for (const part of [
    `SYN flood on ${reader.address}`,
    'Ended at',
    '31,000 packets/s',
    '14.0 Mbit/s',
    'UDP flood',
    '80, 443',
    '80.0 %',
    'All traffic to the address was dropped in the network',
    // Not by webhook: there is no endpoint.
    'You were alerted by mail 20',
  ])
    assert.ok(page.includes(part), `${part} in ${page}`);
});

test('an attack that leaves the server, a drill and information read as what they are', async () => {
  const [sender, trained, busy] = [
    await createReader('Sender'),
    await createReader('Trained'),
    await createReader('Busy'),
  ];
  await deliver(
    incidentOf(sender.address, { direction: 'outbound', class: 'udp_flood' }),
    incidentOf(trained.address, { drill: true }),
    incidentOf(busy.address, { severity: 'info', class: 'high_volume' }),
  );
  assert.match(
    textOf(await sender.page(sender.path)),
    /Sending an attack since .*UDP flood.*Check whether the server/,
  );
  assert.match(textOf(await trained.page(trained.path)), /Drill: Under attack since/);
  assert.doesNotMatch(textOf(await trained.page('/client/')), /under attack/);
  assert.doesNotMatch(textOf(await busy.page(busy.path)), /High traffic volume/);
  assert.match(textOf(await busy.page(`${busy.path}/incidents?severity=info`)), /High traffic volume/);
});

test('the list of attacks goes on page after page, each attack once, the newest first', async () => {
  const reader = await createReader('Many');
  const incidents = Array.from({ length: 120 }, (_, index) =>
    // Several begin at the same time.
    incidentOf(reader.address, { started_at: secondsAgo(86_000 - Math.floor(index / 3)) }),
  );
  for (let at = 0; at < 120; at += 60) await deliver(...incidents.slice(at, at + 60));
  const seen: string[] = [];
  let next: string | undefined = `${reader.path}/incidents`;
  for (let pages = 0; next !== undefined && pages < 5; pages += 1) {
    const page: string = await reader.page(next);
    seen.push(...[...page.matchAll(/protect\/incidents\/([0-9a-f-]{36})"/g)].map((match) => match[1]!));
    next = /href="([^"]*after=[^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
  }
  assert.equal(seen.length, 120);
  assert.deepEqual(new Set(seen), new Set(incidents.map(({ id }) => id)));
});

test('a strange incident or cursor is a page that does not exist, or the first page', async () => {
  const reader = await createReader('Strange');
  for (const id of ['x', '%00', crypto.randomUUID(), `${crypto.randomUUID()}x`])
    assert.equal((await reader.get(`${reader.path}/incidents/${id}`)).status, 404, id);
  for (const after of ['1.x', '99999999999999999.a', '%00', '-1'])
    assert.equal((await reader.get(`${reader.path}/incidents?after=${after}`)).status, 200, after);
});
