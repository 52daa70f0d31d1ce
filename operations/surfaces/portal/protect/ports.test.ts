import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createScanMonitor } from '#operations/testing/deliver-scans.ts';
import { type ScanOptions, scanOf } from '#operations/testing/scan-of.ts';
import { switchViews } from '#operations/testing/switch-views.ts';
import { visit } from '#operations/testing/visit.ts';

let world: World;
let deliver: Awaited<ReturnType<typeof createScanMonitor>>['deliver'];

before(async () => {
  world = await createWorld();
  ({ deliver } = await createScanMonitor(world));
});
after(() => world[Symbol.asyncDispose]());

/** A signed-in customer with a server that is two days old. */
async function createReader(name: string) {
  const customer = await world.createCustomer(name);
  const { serverId } = await world.deploy(customer.tenant, name.toLowerCase().replaceAll(' ', '-'));
  await world.backdate(serverId, '2 days');
  const allocations = await world.addresses.listAllocationsOfServers([serverId]);
  const visitor = await visit(world, customer.email, '/client/settings/');
  const path = `/client/servers/${serverId}/protect`;
  const click = () => visitor.post(`${path}/scan`, {});
  const json = async () => (await (await visitor.get(`${path}/ports.json`)).json()) as PortsFile;
  return { ...customer, ...visitor, serverId, path, click, json, allocations, first: allocations[0]! };
}

interface PortsFile {
  ports: Record<string, unknown>[];
  closed: Record<string, unknown>[];
  scans: Record<string, unknown>[];
}

const textOf = (page: string) => page.replace(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');

test('NET-2.7.1, NET-5.6: the button queues a scan of every address and answers 303; a second click makes no second request', async () => {
  const reader = await createReader('Clicker');
  const first = await reader.click();
  assert.deepEqual([first.status, first.headers.get('location')], [303, `${reader.path}?scan=requested`]);
  const second = await reader.click();
  assert.deepEqual([second.status, second.headers.get('location')], [303, `${reader.path}?scan=pending`]);
  const { scans } = await reader.json();
  assert.deepEqual(
    scans.map(({ address, kind, state }) => [address, kind, state]).sort(),
    reader.allocations.map(({ address }) => [address, 'manual', 'queued']).sort(),
  );
  assert.deepEqual(Object.keys(scans[0]!), [
    ...['id', 'address', 'kind', 'state', 'requested_at', 'started_at', 'finished_at'],
  ]);
  const page = textOf(await reader.page(`${reader.path}?scan=requested`));
  assert.match(page, /Port scan requested\./);
  assert.match(page, /No monitor fetches scan requests right now/);
});

test('NET-8.1: a scan that is refused by the cooldown says until when', async () => {
  const reader = await createReader('Impatient');
  await reader.click();
  await world.database.pool.query(
    "update scan_requests set state = 'complete', finished_at = svc_now() where server_id = $1",
    [reader.serverId],
  );
  const refused = await reader.click();
  assert.equal(refused.headers.get('location'), `${reader.path}?scan=cooldown`);
  const { rows } = await world.database.pool.query<{ at: Date }>(
    "select max(requested_at) + interval '10 minutes' as at from scan_requests where server_id = $1 and kind = 'manual'",
    [reader.serverId],
  );
  const until = rows[0]!.at.toISOString().slice(0, 16).replace('T', ' ');
  assert.ok(
    textOf(await reader.page(`${reader.path}?scan=cooldown`)).includes(
      `No scan can be requested until ${until} UTC`,
    ),
  );
});

test('NET-2.7.1, NET-5.6: without its token, signed out, or for the server of another customer, the button does nothing', async () => {
  const reader = await createReader('Guarded');
  const other = await createReader('Stranger');
  assert.equal((await other.post(`${reader.path}/scan`, {})).status, 404);
  assert.equal((await reader.post(`${reader.path}/scan`, { csrf_token: 'x' })).status, 403);
  const anonymous = await fetch(`${world.url}${reader.path}/scan`, { method: 'POST', redirect: 'manual' });
  assert.ok([303, 403].includes(anonymous.status), String(anonymous.status));
  assert.deepEqual((await reader.json()).scans, []);
});

test('NET-2.7.10: ports.json and the page say what is open since when, how sure it is, and how fresh', async () => {
  const reader = await createReader('Shown');
  const at = (ago: number, more: ScanOptions) => scanOf(reader.first, { endedSecondsAgo: ago, ...more });
  await deliver(
    at(9000, { ports: [22, 31_337] }),
    at(6000, { ports: [22, 25], profile: 'common' }),
    at(30, { ports: [22, 80], profile: 'common' }),
  );
  const { ports, closed, scans } = await reader.json();
  assert.deepEqual(
    ports.map(({ port, profile, freshness }) => [port, profile, freshness]),
    [
      [22, 'common', 'fresh'],
      [80, 'common', 'fresh'],
      [31_337, 'full', 'fresh'],
    ],
  );
  const { first_observed_at, observed_at, identified_at, ...ssh } = ports[0]!;
  assert.equal(identified_at, observed_at);
  assert.deepEqual(ssh, {
    ...{ address: reader.first.address, transport: 'tcp', port: 22, service: 'ssh', product: 'OpenSSH' },
    ...{ version: '9.6p1', state: 'open', profile: 'common', freshness: 'fresh' },
  });
  assert.ok(Date.parse(first_observed_at as string) < Date.parse(observed_at as string));
  assert.deepEqual(
    closed.map(({ port, state }) => [port, state]),
    [[25, 'closed']],
  );
  assert.deepEqual(
    scans.map(({ kind, state }) => [kind, state]),
    [0, 1, 2].map(() => ['routine', 'complete']),
  );
  const page = textOf(await reader.page(reader.path));
  assert.match(page, /tcp\/22 .*OpenSSH 9\.6p1 .*100 %, answered a probe/);
  assert.match(page, /tcp\/31337 .*guess by port/);
  assert.match(page, /Closed within seven days .*tcp\/25/);
});

test('NET-2.7.9: the page of a requested scan keeps what it found; another customer gets a 404', async () => {
  const reader = await createReader('Kept');
  const other = await createReader('Peeking');
  await reader.click();
  const { scans } = await reader.json();
  const { id } = scans.find(({ address }) => address === reader.first.address) as { id: string };
  await deliver(
    scanOf(reader.first, { request_id: id, endedSecondsAgo: 600, ports: [22, 80], notes: ['silent_udp'] }),
  );
  await deliver(scanOf(reader.first, { endedSecondsAgo: 5, ports: [22], profile: 'common' }));
  const page = textOf(await reader.page(`${reader.path}/scans/${id}`));
  assert.match(page, /complete .*tcp\/22 .*tcp\/80/);
  assert.match(page, /some UDP ports did not respond/);
  for (const path of [`${reader.path}/scans/${id}`, `${other.path}/scans/${id}`, `${reader.path}/ports.json`])
    assert.equal((await other.get(path)).status, 404, path);
  assert.equal((await reader.get(`${reader.path}/scans/nonsense`)).status, 404);
});

test('NET-1.6: while the views are off there are no ports and no button; on again shows what was observed since', async () => {
  const reader = await createReader('Off');
  await switchViews(world, reader, reader.serverId, false);
  assert.equal((await reader.get(`${reader.path}/ports.json`)).status, 404);
  assert.equal((await reader.click()).status, 404);
  await deliver(scanOf(reader.first));
  await switchViews(world, reader, reader.serverId, true);
  assert.deepEqual(
    (await reader.json()).ports.map(({ port }) => port),
    [22],
  );
});

test('what a server answers is text, also when it is written as markup', async () => {
  const reader = await createReader('Hostile');
  const scan = scanOf(reader.first);
  Object.assign(scan.services[0]!, { product: '<script>alert(1)</script>', extra_info: '"><img src=x>' });
  await deliver(scan);
  const page = await reader.page(reader.path);
  assert.ok(!page.includes('<script>alert(1)') && !page.includes('<img src=x>'));
  assert.ok(page.includes('&lt;script&gt;alert(1)'));
});

test('a refusal is told on the page, and a word of a URL that is none of ours says nothing', async () => {
  const reader = await createReader('Refused');
  await world.servers.changePower(systemActor, null, reader.serverId, { command: 'stop' });
  await world.jobs.drain();
  assert.equal((await reader.click()).headers.get('location'), `${reader.path}?scan=not_running`);
  assert.match(textOf(await reader.page(`${reader.path}?scan=not_running`)), /The server is not running\./);
  assert.ok(!(await reader.page(`${reader.path}?scan=toString`)).includes('data-toast'));
});
