/** What happened to servers, on the time axes of the portal's charts. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createScanMonitor, type ScanMonitor } from '#operations/testing/deliver-scans.ts';
import { incidentOf, secondsAgo } from '#operations/testing/incident-of.ts';
import { ownerOf, scanOf } from '#operations/testing/scan-of.ts';
import { switchViews } from '#operations/testing/switch-views.ts';

let world: World;
let monitor: ScanMonitor;
before(async () => {
  world = await createWorld();
  monitor = await createScanMonitor(world);
});
after(() => world[Symbol.asyncDispose]());

interface Flag {
  timeMs: number;
  text: string;
  tone: string;
  href: string | null;
}

interface Server {
  serverId: number;
  address: string;
}

/** A signed-in customer with servers of these names. */
async function createReader(company: string, names: readonly string[]) {
  const customer = await world.createCustomer(company);
  const { tenant, owner, email } = customer;
  const servers: Server[] = [];
  for (const name of names) {
    const { serverId, allocations } = await world.deploy(tenant, name);
    await world.backdate(serverId, '3 hours');
    servers.push({ serverId, address: allocations[0]!.address });
  }
  const cookie = await world.signIn(email);
  const get = async (path: string) => {
    const answer = await fetch(`${world.url}/client/${path}`, { headers: { cookie, accept: 'text/html' } });
    assert.equal(answer.status, 200, path);
    return answer;
  };
  const flags = async (path: string) => ((await (await get(path)).json()) as { flags: Flag[] }).flags;
  const texts = async (path: string) => (await flags(path)).map(({ text }) => text);
  const page = async (path: string) => (await get(path)).text();
  return { customer, tenant, owner: ownerOf({ owner, tenant }), servers, flags, texts, page, get };
}

async function power(serverId: number, command: 'start' | 'stop' | 'shutdown' | 'reboot' | 'reset') {
  await world.servers.changePower(systemActor, null, serverId, { command });
  await world.jobs.drain();
}

/** Oldest first. */
const inOrder = (flags: readonly Flag[]) =>
  flags.every((flag, at) => at === 0 || flags[at - 1]!.timeMs <= flag.timeMs);

/** The list under a chart, newest first. */
function listIn(page: string): string[] {
  const list = /<ul class="chart-flag-list">(.*?)<\/ul>/s.exec(page)?.[1] ?? '';
  return [...list.matchAll(/<li>.*?<\/span>\s*(.*?)<\/li>/gs)].map(([, item]) =>
    item!.replaceAll(/<[^>]+>/g, ''),
  );
}

/** The figure of the bars of days. */
const barsIn = (page: string) => /<figure class="chart[^"]*" id="bandwidth".*?<\/figure>/s.exec(page)![0];

const count = (texts: readonly string[], text: string) => texts.filter((each) => each === text).length;

test('a server’s chart marks its deploy, power, firewall, networks, settings, attacks and scans, each with its page', async () => {
  const reader = await createReader('Whole', ['whole-1']);
  const [{ serverId, address }] = reader.servers as [Server];
  for (const command of ['reboot', 'reset', 'shutdown', 'start', 'stop', 'start'] as const)
    await power(serverId, command);
  // Running already: nothing happened.
  await power(serverId, 'start');
  const rule = {
    ...({ direction: 'inbound', action: 'accept', protocol: 'tcp' } as const),
    ...{ ports: '22', peers: [], description: '' },
  };
  await world.firewalls.changeFirewall(reader.owner, serverId, 0, { kind: 'switch', isEnabled: true });
  await world.firewalls.changeFirewall(reader.owner, serverId, 1, { kind: 'add', rule: rule });
  await world.jobs.drain();
  const network = { tenantId: reader.tenant.id, name: 'backend', cidr: '10.20.0.0/24' };
  const { id: networkId } = await world.networks.createNetwork(systemActor, network);
  await world.jobs.drain();
  await world.networks.attachServer(systemActor, null, { serverId, networkId });
  await world.jobs.drain();
  await world.networks.detachServer(systemActor, null, { serverId, networkId });
  await world.jobs.drain();
  await world.protectSettings.change(reader.owner, serverId, {
    ...{ viewsOn: true, attackMail: false, attackWebhook: true, portMail: false, portWebhook: false },
    ...{ findingMail: 'off', findingWebhook: false },
  });
  const attack = incidentOf(address);
  const drill = incidentOf(address, { drill: true, class: 'udp_flood' });
  assert.deepEqual(await world.deliverIncidents(attack, drill), ['applied', 'applied']);
  const { requests } = await world.protectScans.request(reader.owner, serverId);
  const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
  const asked = requests.find((each) => each.allocationId === allocation!.id)!;
  await monitor.deliver(
    scanOf(allocation!, { request_id: asked.id }),
    scanOf(allocation!),
    scanOf(allocation!, { profile: 'common' }),
  );

  const path = `servers/${serverId}`;
  const flags = await reader.flags(`${path}/traffic/chart.json?range=1h`);
  const home = `/client/${path}`;
  assert.deepEqual(
    flags.map(({ text, href, tone }) => [text, href, tone]).sort(),
    [
      ['Deployed', home, 'neutral'],
      ['Rebooted', home, 'neutral'],
      ['Reset', home, 'neutral'],
      ['Shut down', home, 'neutral'],
      ['Started', home, 'neutral'],
      ['Powered off', home, 'neutral'],
      ['Started', home, 'neutral'],
      ['Firewall switched on', `${home}/firewall`, 'neutral'],
      ['Firewall rule added', `${home}/firewall`, 'neutral'],
      ['Attached to a private network', `${home}/networks`, 'neutral'],
      ['Detached from a private network', `${home}/networks`, 'neutral'],
      ['Protection settings changed', `${home}/protect#settings`, 'neutral'],
      ['SYN flood', `${home}/protect/incidents/${attack.id}`, 'bad'],
      ['Drill: UDP flood', `${home}/protect/incidents/${drill.id}`, 'info'],
      [`Port scan of ${address}`, `${home}/protect/scans/${asked.id}`, 'info'],
      // The hourly scan of 100 ports is not told, and a scan that was not requested has no page.
      [`Daily port scan of ${address}`, null, 'info'],
    ].sort(),
  );
  assert.ok(inOrder(flags));
  for (const { href } of flags) if (href !== null) await reader.get(href.replace('/client/', ''));

  const page = await reader.page(`${path}/traffic?range=1h`);
  assert.deepEqual(
    listIn(page).sort(),
    flags.map(({ text }) => text).sort(),
    'the list under the chart has the same',
  );
  const newest = new Date(flags.at(-1)!.timeMs);
  const monthMs = Date.UTC(newest.getUTCFullYear(), newest.getUTCMonth());
  assert.deepEqual(
    listIn(barsIn(await reader.page(`${path}/traffic/usage`))).sort(),
    flags.flatMap(({ text, timeMs }) => (timeMs < monthMs ? [] : [text])).sort(),
    'the bars of the month have those of the month',
  );
  const months = await reader.page(`${path}/traffic/usage?use=month`);
  assert.deepEqual(listIn(barsIn(months)), []);
  const live = await reader.texts(`${path}/traffic/live-chart.json`);
  assert.ok(live.includes('Rebooted') && live.includes('SYN flood'), live.join());
  assert.deepEqual(
    listIn(await reader.page(path)).sort(),
    [...live].sort(),
    'the overview has the last ten minutes',
  );
  const other = await reader.texts(`${path}/traffic/chart.json?range=1h&address=192.0.2.250`);
  assert.deepEqual(other, [], 'an address that it never had');
});

test('a power state that no command led to is marked as it was found, and a command that failed as that', async () => {
  const reader = await createReader('Found', ['found-1']);
  const [{ serverId }] = reader.servers as [Server];
  const chart = `servers/${serverId}/traffic/chart.json?range=1h`;
  assert.deepEqual(await reader.texts(chart), ['Deployed']);
  await world.hypervisor.setPower(`vm-${serverId}`, 'off');
  assert.equal(await world.observePower(), 1);
  assert.deepEqual(await reader.texts(chart), ['Deployed', 'Found stopped']);
  await power(serverId, 'start');
  assert.deepEqual(await reader.texts(chart), ['Deployed', 'Started']);
});

test('the explorer marks what happened to the servers that pass its filters, and names them where they are several', async () => {
  const reader = await createReader('Explored', ['web-1', 'db-1']);
  const [web, db] = reader.servers as [Server, Server];
  await power(web.serverId, 'reboot');
  const attack = incidentOf(db.address);
  await world.deliverIncidents(attack);
  const chart = (q: string) => `traffic/chart.json?range=1h&q=${encodeURIComponent(q)}`;
  assert.deepEqual((await reader.texts(chart(''))).sort(), [
    'db-1: Deployed',
    'db-1: SYN flood',
    'web-1: Deployed',
    'web-1: Rebooted',
  ]);
  assert.deepEqual(await reader.texts(chart('server:web-1')), ['Deployed', 'Rebooted']);
  const ofAddress = await reader.texts(chart(`address:${db.address}`));
  assert.deepEqual(ofAddress.sort(), ['db-1: Deployed', 'db-1: SYN flood']);
  const ofOther = await reader.texts(chart(`-address:${db.address}`));
  assert.deepEqual(
    ofOther.sort(),
    ['db-1: Deployed', 'web-1: Deployed', 'web-1: Rebooted'],
    'it has another address',
  );
  const [flood] = (await reader.flags(chart(''))).filter(({ text }) => text === 'db-1: SYN flood');
  assert.equal(flood!.href, `/client/servers/${db.serverId}/protect/incidents/${attack.id}`);

  const page = await reader.page('traffic/?range=1h');
  assert.equal(listIn(page).length, 4);
  assert.doesNotMatch(page, /are marked\./, 'nothing is left out');
  const file = (await (await reader.get('traffic/?range=1h&format=json&table=steps')).json()) as {
    rows: { time: string; events: string | null }[];
  };
  const said = file.rows.flatMap(({ events }) => events?.split('; ') ?? []);
  assert.deepEqual(said.sort(), (await reader.texts(chart(''))).sort(), 'the file of the chart has them');
  const csv = await (await reader.get('traffic/?range=1h&format=csv&table=steps')).text();
  assert.match(csv, /web-1: Rebooted/);
});

test('NET-1.6: with protection views off no chart marks attacks and scans of the server', async () => {
  const reader = await createReader('Hidden', ['seen-1', 'hidden-1']);
  const [seen, hidden] = reader.servers as [Server, Server];
  await world.deliverIncidents(incidentOf(seen.address), incidentOf(hidden.address));
  const floods = async () =>
    count(await reader.texts('traffic/chart.json?range=1h&by=direction'), 'hidden-1: SYN flood');
  assert.equal(await floods(), 1);
  await switchViews(world, reader.customer, hidden.serverId, false);
  assert.equal(await floods(), 0);
  assert.doesNotMatch(await reader.page('traffic/?range=1h'), />hidden-1</);
  assert.deepEqual(listIn(await reader.page(`servers/${hidden.serverId}`)), []);
  const bars = async ({ serverId }: Server) =>
    listIn(barsIn(await reader.page(`servers/${serverId}/traffic/usage`)));
  assert.equal(count(await bars(hidden), 'SYN flood'), 0);
  assert.equal(count(await bars(seen), 'SYN flood'), 1);
  // By the id alone, as no page asks: the statement itself leaves them out, of few servers and of many.
  const range = { fromMs: world.clock.nowMs() - 3_600_000, toMs: world.clock.nowMs() + 60_000 };
  const all = [seen.serverId, hidden.serverId];
  const kinds = async (serverIds: number[]) =>
    (await world.serverHistory.list(reader.owner, { serverIds, ...range })).events
      .filter(({ kind }) => kind === 'attack')
      .map(({ serverId }) => serverId);
  assert.deepEqual(await kinds(all), [seen.serverId]);
  assert.deepEqual(await kinds([...all, ...Array.from({ length: 10 }, (_, at) => 900_000 + at)]), [
    seen.serverId,
  ]);
});

test('another customer’s servers never give a flag, by no filter and by no id', async () => {
  const own = await createReader('Own', ['own-1']);
  const other = await createReader('Other', ['other-1']);
  const [{ serverId, address }] = other.servers as [Server];
  await power(serverId, 'reboot');
  await world.deliverIncidents(incidentOf(address));
  for (const q of [
    '',
    'server:other-1',
    `server:${serverId}`,
    `address:${address}`,
    `server:own-1,${serverId}`,
  ]) {
    const texts = await own.texts(`traffic/chart.json?range=1h&q=${encodeURIComponent(q)}`);
    assert.deepEqual(
      texts.filter((text) => text !== 'Deployed'),
      [],
      q,
    );
  }
  const range = { fromMs: world.clock.nowMs() - 3_600_000, toMs: world.clock.nowMs() + 60_000 };
  const many = Array.from({ length: 11 }, (_, at) => serverId + at);
  for (const serverIds of [[serverId], many])
    for (const addresses of [[], [{ isNot: false, values: [address] }]])
      for (const isEveryServer of [false, true]) {
        const ask = { serverIds, addresses, isEveryServer, ...range };
        const { events } = await world.serverHistory.list(own.owner, ask);
        assert.deepEqual(events, [], JSON.stringify(ask));
      }
});

test('of more than ten servers attacks alone are marked, the newest forty, and the page says what it leaves out', async () => {
  const names = Array.from({ length: 11 }, (_, at) => `many-${at + 1}`);
  const reader = await createReader('Many', names);
  const [first, second] = reader.servers as [Server, Server];
  await power(first.serverId, 'reboot');
  await world.deliverIncidents(incidentOf(first.address));
  assert.deepEqual(await reader.texts('traffic/chart.json?range=1h'), ['many-1: SYN flood']);
  const page = await reader.page('traffic/?range=1h');
  assert.deepEqual(listIn(page), ['many-1: SYN flood']);
  assert.match(page, /With more than 10 servers only attacks are marked\. Filter for fewer servers/);
  assert.doesNotMatch(page, /The newest 40/);
  const ten = `traffic/?range=1h&q=-server:many-11`;
  assert.doesNotMatch(await reader.page(ten), /are marked\./);
  assert.ok(listIn(await reader.page(ten)).includes('many-1: Rebooted'));
  const old = Array.from({ length: 45 }, (_, at) => {
    const startedAt = secondsAgo(600 + at * 10);
    return incidentOf(second.address, { class: 'udp_flood', started_at: startedAt, detected_at: startedAt });
  });
  await world.deliverIncidents(...old);
  const flags = await reader.flags('traffic/chart.json?range=1h');
  assert.equal(flags.length, 40);
  assert.equal(flags.at(-1)!.text, 'many-1: SYN flood', 'the newest one');
  assert.ok(inOrder(flags));
  assert.match(await reader.page('traffic/?range=1h'), /The newest 40 attacks are marked\./);
  assert.match(
    await reader.page(`servers/${second.serverId}/traffic?range=1h`),
    /The newest 40 events are marked\./,
  );
});
