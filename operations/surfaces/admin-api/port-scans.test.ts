import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type {
  DeliveredScan,
  PortScanReceipts,
  ScanRequestOutcomes,
  ScanRequestsPage,
  ScanRequestUpdate,
} from '#contracts/admin-api/port-scans.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/create-world.ts';
import { secondsAgo } from '#operations/testing/incident-of.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
import { ownerOf, scanOf, serviceOf } from '#operations/testing/scan-of.ts';
import { moveDatabaseClock } from '#service-kit/testing/index.ts';

let world: World;
let token: string;

before(async () => {
  world = await createWorld();
  token = await world.createToken(['protect_port_scan_ingest']);
});
after(() => world[Symbol.asyncDispose]());

const url = (path: string) => `${world.url}/api/admin/v1/protect/${path}`;
const headers = (bearer = token) => ({
  authorization: `Bearer ${bearer}`,
  'content-type': 'application/json',
});

/** A customer with a server whose addresses were assigned two hours ago. */
async function createReader(name: string) {
  const customer = await world.createCustomer(name);
  const { serverId } = await world.deploy(customer.tenant, name.toLowerCase().replaceAll(' ', '-'));
  await world.backdate(serverId, '2 hours');
  const allocations = await world.addresses.listAllocationsOfServers([serverId]);
  const subject = { serverId, tenantId: customer.tenant.id };
  return { ...customer, serverId, subject, actor: ownerOf(customer), allocations, first: allocations[0]! };
}

type Reader = Awaited<ReturnType<typeof createReader>>;

async function fetchPage(query = '', bearer = token): Promise<ScanRequestsPage> {
  const answer = await fetch(url(`scan-requests/${query}`), { headers: headers(bearer) });
  assert.equal(answer.status, 200, await answer.clone().text());
  return (await answer.json()) as ScanRequestsPage;
}

async function fetchAll(limit: number, bearer = token) {
  const found: ScanRequestsPage['requests'] = [];
  for (let after = ''; ; ) {
    const page = await fetchPage(`?limit=${limit}${after}`, bearer);
    found.push(...page.requests);
    if (page.next_after === null) return found;
    after = `&after=${page.next_after}`;
  }
}

const postUpdates = (updates: readonly unknown[], site = 7, bearer = token) =>
  fetch(url('scan-requests/'), {
    method: 'POST',
    headers: headers(bearer),
    body: JSON.stringify({ contract_version: 1, source_site_id: site, updates }),
  });

async function say(id: string, state: ScanRequestUpdate['state'], more: object = {}, site = 7) {
  const answer = await postUpdates([{ id, state, ...quiet, ...more }], site);
  assert.equal(answer.status, 200, await answer.clone().text());
  return ((await answer.json()) as ScanRequestOutcomes).outcomes[0]!.outcome;
}
const quiet = { started_at: null, heartbeat_at: null, progress: null };
const startedNow = () => ({ started_at: secondsAgo(5), heartbeat_at: secondsAgo(5), progress: 1 });

async function deliver(scans: readonly DeliveredScan[], site = 7, bearer = token) {
  const answer = await fetch(url('port-scans/'), {
    method: 'POST',
    headers: headers(bearer),
    body: JSON.stringify({
      ...{ contract_version: 1, source_site_id: site, cluster_ids: [world.clusterId], results: scans },
    }),
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return ((await answer.json()) as PortScanReceipts).receipts.map(({ receipt }) => receipt);
}

const request = async ({ actor, serverId }: Reader) =>
  (await world.protectScans.request(actor, serverId)).requests;
const statesOf = async ({ subject }: Reader) =>
  (await world.protectScans.read(systemActor, subject)).scans.map(({ state }) => state);
const openOf = async ({ subject }: Reader, at?: Allocation) =>
  (await world.protectScans.read(systemActor, subject)).open
    .filter(({ address }) => at === undefined || address === at.address)
    .map(({ transport, port }) => (transport === 'tcp' ? port : `udp/${port}`));
/** What happens so much later by the database's clock. */
async function later(interval: string, happens: () => Promise<unknown>): Promise<void> {
  await moveDatabaseClock(world.database, interval);
  try {
    await happens();
  } finally {
    await moveDatabaseClock(world.database, '0');
  }
}
const keeper = () => loopOf(world.protectScans, 'operations-scan-requests').runOnce();

test('NET-2.7.1: a click requests every public address of the server once, however often it is repeated', async () => {
  const reader = await createReader('Clicks');
  const clicks = await Promise.all(
    Array.from({ length: 8 }, () => world.protectScans.request(reader.actor, reader.serverId)),
  );
  assert.equal(clicks.filter(({ isNew }) => isNew).length, 1);
  const ids = new Set(clicks.flatMap(({ requests }) => requests.map(({ id }) => id)));
  assert.equal(ids.size, reader.allocations.length);
  const page = (await fetchAll(100)).filter((each) => each.virtual_machine_id === reader.serverId);
  assert.deepEqual(
    page.map(({ address, assigned_at, kind, profile }) => [address, assigned_at, kind, profile]).sort(),
    reader.allocations.map((each) => [each.address, each.assignedAt, 'manual', 'full']).sort(),
  );
  assert.deepEqual(new Set(page.map(({ id }) => id)), ids);
});

test('NET-3.1: a claim leaves a request queued, a reported start makes it running, and its result completes it', async () => {
  const reader = await createReader('Life');
  const [{ id } = { id: '' }, ...others] = await request(reader);
  assert.equal(await say(id, 'claimed'), 'accepted');
  assert.equal(await say(id, 'claimed'), 'unchanged');
  assert.deepEqual(new Set(await statesOf(reader)), new Set(['queued']));
  assert.equal(await say(id, 'running', startedNow()), 'accepted');
  assert.ok((await statesOf(reader)).includes('running'));
  assert.equal(
    await say(id, 'running', { ...startedNow(), heartbeat_at: secondsAgo(1), progress: 40 }),
    'accepted',
  );
  assert.equal(await say(id, 'running', startedNow()), 'unchanged', 'a late heartbeat');
  const read = async () =>
    (await world.protectScans.read(systemActor, reader.subject)).scans.find((scan) => scan.id === id)!;
  assert.equal((await read()).progress, 40);
  const at =
    reader.allocations.find(({ address }) => address === undefined) ?? (await allocationOf(reader, id));
  const result = scanOf(at, { request_id: id, endedSecondsAgo: 0, notes: ['silent_udp'] });
  assert.deepEqual(await deliver([result, result]), ['accepted', 'unchanged']);
  assert.equal((await read()).state, 'complete');
  assert.equal((await read()).result?.portsOpen, 1);
  assert.equal(await say(id, 'running', startedNow()), 'unchanged');
  assert.equal((await read()).state, 'complete');
  assert.ok(!(await fetchAll(100)).some((each) => each.id === id));
  assert.equal(others.length, reader.allocations.length - 1);
});

const allocationOf = async (reader: Reader, id: string) => {
  const page = await fetchAll(500);
  const { allocation_id } = page.find((each) => each.id === id)!;
  return reader.allocations.find((each) => each.id === allocation_id)!;
};

test('NET-3.1: an interrupted scan ends partial; a running request outlives its start window and shows as overdue', async () => {
  const reader = await createReader('Partial');
  const requests = await request(reader);
  const { id } = requests[0]!;
  await say(id, 'running', startedNow());
  await later('26 hours', async () => {
    await keeper();
    const { scans } = await world.protectScans.read(systemActor, reader.subject);
    const running = scans.find((scan) => scan.id === id)!;
    assert.deepEqual([running.state, running.isOverdue], ['running', true]);
    const unstarted = scans.filter((scan) => scan.id !== id);
    assert.ok(unstarted.every(({ state }) => state === 'expired'));
    for (const { id: other } of requests.slice(1)) assert.equal(await say(other, 'claimed'), 'expired');
  });
  const partial = scanOf(await allocationOf(reader, id), {
    request_id: id,
    state: 'partial',
    notes: ['interrupted'],
  });
  assert.deepEqual(await deliver([partial]), ['accepted']);
  assert.equal(
    (await world.protectScans.read(systemActor, reader.subject)).scans.find((s) => s.id === id)!.state,
    'partial',
  );
});

test('NET-8.1: cooldown, addresses of a server and pending addresses of an account are limited', async () => {
  const reader = await createReader('Limits');
  const requests = await request(reader);
  for (const each of requests) {
    const at = reader.allocations.find(({ id }) => id === each.allocationId)!;
    await deliver([scanOf(at, { request_id: each.id })]);
  }
  const refusal = (code: string) => ({ code: `port_scans.${code}` });
  await assert.rejects(request(reader), refusal('cooldown'));
  await later('9 minutes', () => assert.rejects(request(reader), refusal('cooldown')));
  await later('601 seconds', async () => {
    const { pool } = world.database;
    await addAddresses(reader, 33 - reader.allocations.length);
    await assert.rejects(request(reader), refusal('too_many_addresses'));
    await pool.query(
      'delete from allocations where id = (select max(id) from allocations where server_id = $1)',
      [reader.serverId],
    );
    const other = await world.deploy(reader.tenant, 'limits-other');
    await fillPending(other.allocations[0]!, 69);
    await assert.rejects(request(reader), refusal('limit_exceeded'));
    await pool.query(
      "delete from scan_requests where id = (select id from scan_requests where state = 'queued' and server_id = $1 limit 1)",
      [other.serverId],
    );
    assert.equal((await request(reader)).length, 32);
  });
});

/** More addresses on the server, as floating ones are. */
async function addAddresses({ first, serverId }: Reader, count: number): Promise<void> {
  await world.database.pool.query(
    `insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary)
     select pool_id, cluster_id, tenant_id, server_id, '192.0.2.0'::inet + n, prefix_length, gateway, false
     from allocations, generate_series(1, $2::int) n where id = $1 and server_id = $3`,
    [first.id, count, serverId],
  );
}

/** Pending requests of this many other generations of the account. */
async function fillPending(of: Allocation, count: number): Promise<void> {
  await world.database.pool.query(
    `with more as (
       insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary)
       select pool_id, cluster_id, tenant_id, server_id, '198.18.0.0'::inet + (allocations.id * 256 + n), prefix_length, gateway, false
       from allocations, generate_series(1, $2::int) n where id = $1 returning *)
     insert into scan_requests (kind, allocation_id, cluster_id, tenant_id, server_id, address)
     select 'manual', id, cluster_id, tenant_id, server_id, host(address) from more`,
    [of.id, count],
  );
}

test('NET-1.6: switching the views off cancels queued manual requests; switching on revives none', async () => {
  const reader = await createReader('Views');
  const requests = await request(reader);
  await say(requests[0]!.id, 'running', startedNow());
  const settings = await world.protectSettings.find(reader.actor, reader.subject);
  await world.protectSettings.change(reader.actor, reader.serverId, { ...settings, viewsOn: false });
  await assert.rejects(request(reader), { code: 'port_scans.views_off' });
  for (const { id } of requests.slice(1)) assert.equal(await say(id, 'claimed'), 'cancelled');
  await world.protectSettings.change(reader.actor, reader.serverId, { ...settings, viewsOn: true });
  const { scans } = await world.protectScans.read(systemActor, reader.subject);
  assert.deepEqual(
    scans.map(({ id, state }) => [id === requests[0]!.id, state]),
    [[true, 'running'], ...requests.slice(1).map(() => [false, 'cancelled'])],
  );
});

test('NET-2.7.2: a new address gets one automatic request while a monitor fetches, and a click takes its place', async () => {
  await fetchPage();
  const reader = await createReader('Automatic');
  await keeper();
  await keeper();
  const automatic = (await fetchAll(500)).filter((each) => each.virtual_machine_id === reader.serverId);
  assert.deepEqual(
    automatic.map(({ kind }) => kind),
    reader.allocations.map(() => 'automatic'),
  );
  await request(reader);
  assert.equal(await say(automatic[0]!.id, 'running', startedNow()), 'cancelled');
  const manual = (await fetchAll(500)).filter((each) => each.virtual_machine_id === reader.serverId);
  assert.deepEqual(
    manual.map(({ kind }) => kind),
    reader.allocations.map(() => 'manual'),
  );
  await later('6 minutes', async () => {
    const late = await createReader('Unfetched');
    await keeper();
    const { scans, isFetched } = await world.protectScans.read(systemActor, late.subject);
    assert.deepEqual([scans, isFetched], [[], false]);
  });
});

test('NET-4.e: a page takes one request of each account in turn, and none is lost while others end', async () => {
  const [one, two] = [await createReader('Fair one'), await createReader('Fair two')];
  await fillPending(one.first, 6);
  await fillPending(two.first, 2);
  const mine = [one.tenant.id, two.tenant.id];
  const bearer = token;
  const all = (await fetchAll(500, bearer)).filter((each) => mine.includes(each.billing_account_id));
  assert.deepEqual(
    all.map(({ billing_account_id: id }) => mine.indexOf(id)),
    [0, 1, 0, 1, 0, 0, 0, 0],
  );
  const first = await fetchPage('?limit=3');
  await world.database.pool.query(
    "update scan_requests set state = 'cancelled', finished_at = svc_now() where id = any($1)",
    [first.requests.map(({ id }) => id)],
  );
  const seen = new Set(first.requests.map(({ id }) => id));
  for (let after = first.next_after; after !== null; ) {
    const page = await fetchPage(`?limit=3&after=${after}`);
    for (const { id } of page.requests) {
      assert.ok(!seen.has(id));
      seen.add(id);
    }
    after = page.next_after;
  }
  assert.ok(all.every(({ id }) => seen.has(id)));
  assert.equal((await fetch(url('scan-requests/?after=x'), { headers: headers() })).status, 422);
});

test('NET-5.2: requests and results need their permission, and a project sees its own clusters alone', async () => {
  const reader = await createReader('Scopes');
  const [{ id } = { id: '' }] = await request(reader);
  const other = await world.createToken(['ddos_incident_ingest']);
  for (const answer of [
    await fetch(url('scan-requests/'), { headers: headers(other) }),
    await postUpdates([], 7, other),
  ])
    assert.equal(answer.status, 403);
  const foreign = await world.createToken(['protect_port_scan_ingest'], [world.clusterId + 1]);
  assert.deepEqual((await fetchPage('', foreign)).requests, []);
  const answer = await postUpdates([{ id, state: 'claimed', ...quiet }], 7, foreign);
  assert.deepEqual(await answer.json(), { outcomes: [{ id, outcome: 'unknown' }] });
  assert.deepEqual(await deliver([scanOf(reader.first)], 7, foreign), ['unmatched']);
  assert.equal(await say(randomUUID(), 'claimed'), 'unknown');
  assert.equal((await postUpdates([{ id, state: 'running', ...quiet }])).status, 422);
  const discovery = await fetch(`${world.url}/api/admin/v1/discovery/`, { headers: headers() });
  const { capabilities } = (await discovery.json()) as { capabilities: Record<string, unknown> };
  assert.deepEqual(capabilities, { protect_port_scan_ingest: true, protect_port_scan_ingest_version: 1 });
});

test('NET-2.7.9: a request keeps its id for good, and a changed connection has a new revision', async () => {
  const reader = await createReader('Revision');
  await request(reader);
  const project = await world.adminProjects.create(systemActor, {
    ...{ name: 'Revised', permissions: ['protect_port_scan_ingest'], clusterIds: null },
  });
  const { token: bearer } = await world.adminProjects.issueToken(systemActor, project.id, null);
  const mine = async () =>
    (await fetchAll(500, bearer)).filter((each) => each.virtual_machine_id === reader.serverId);
  const before = await mine();
  assert.deepEqual(await mine(), before);
  await world.adminProjects.update(systemActor, project.id, {
    ...{ name: 'Revised', permissions: ['protect_port_scan_ingest'], clusterIds: [world.clusterId] },
  });
  const again = await mine();
  assert.deepEqual(
    again.map(({ id }) => id),
    before.map(({ id }) => id),
  );
  assert.ok(again.every(({ revision }, index) => revision > before[index]!.revision));
});

test('NET-2.7.11: a result of another address, assignment or account, or of a released address, is unmatched', async () => {
  const reader = await createReader('Owned');
  const other = await createReader('Other owner');
  const [{ id } = { id: '' }] = await request(other);
  const wrong = [
    scanOf({ ...reader.first, address: other.first.address }),
    scanOf({ ...reader.first, assignedAt: secondsAgo(60) }),
    scanOf({ ...reader.first, id: other.first.id }),
    scanOf(reader.first, { endedSecondsAgo: 2 * 3600 }),
    scanOf(reader.first, { request_id: id }),
  ];
  assert.deepEqual(new Set(await deliver(wrong)), new Set(['unmatched']));
  assert.deepEqual(await openOf(reader), []);
  await world.servers.destroyServer(systemActor, null, reader.serverId);
  await world.jobs.drain();
  assert.deepEqual(await deliver([scanOf(reader.first)]), ['unmatched']);
  const { rows } = await world.database.pool.query('select 1 from port_scans where server_id = $1', [
    reader.serverId,
  ]);
  assert.deepEqual(rows, []);
});

test('NET-2.7.11: another site may not deliver results while the first one does', async () => {
  const { first } = await createReader('Source');
  assert.deepEqual(await deliver([scanOf(first)]), ['accepted']);
  assert.deepEqual(await deliver([scanOf(first)], 8), ['source_conflict']);
  await later('3 hours 1 second', async () => {
    assert.deepEqual(await deliver([scanOf(first)], 8), ['accepted']);
  });
});

test('NET-2.7.10: common scans close common ports alone, full ones close what they did not find, partial ones nothing', async () => {
  const reader = await createReader('Closing');
  const { first } = reader;
  await deliver([scanOf(first, { endedSecondsAgo: 3000, ports: [22, 80, 31_337, 'udp/53'] })]);
  assert.deepEqual(await openOf(reader), [22, 80, 31_337, 'udp/53']);
  await deliver([scanOf(first, { endedSecondsAgo: 2000, ports: [443], state: 'partial' })]);
  assert.deepEqual(await openOf(reader), [22, 80, 443, 31_337, 'udp/53']);
  await deliver([scanOf(first, { endedSecondsAgo: 1000, ports: [22], profile: 'common' })]);
  assert.deepEqual(await openOf(reader), [22, 31_337]);
  await deliver([scanOf(first, { endedSecondsAgo: 100, ports: [22, 443] })]);
  assert.deepEqual(await openOf(reader), [22, 443]);
  const { closed } = await world.protectScans.read(systemActor, reader.subject);
  assert.deepEqual(
    closed.map(({ port }) => port),
    [80, 31_337, 53],
  );
  await deliver([scanOf(first, { endedSecondsAgo: 2500, ports: [8443, 31_337] })]);
  assert.deepEqual(await openOf(reader), [22, 443], 'delivered late');
});

test('NET-2.7.10: common evidence is stale after 2 hours, full after 27, and all is gone after seven days', async () => {
  const reader = await createReader('Fresh');
  await deliver([
    scanOf(reader.first, { endedSecondsAgo: 20, ports: [22, 9999] }),
    scanOf(reader.first, { endedSecondsAgo: 0, ports: [22, 9999, 80], profile: 'common' }),
  ]);
  const seen = async () =>
    (await world.protectScans.read(systemActor, reader.subject)).open.map(
      ({ port, profile, freshness }) => `${port} ${profile} ${freshness}`,
    );
  const at = (moved: string, expected: string[]) =>
    later(moved, async () => assert.deepEqual(await seen(), expected, moved));
  await at('1 hour', ['22 common fresh', '80 common fresh', '9999 common fresh']);
  await at('3 hours', ['22 full fresh', '80 common stale', '9999 full fresh']);
  await at('28 hours', ['22 common stale', '80 common stale', '9999 common stale']);
  await later('7 days 1 minute', async () => {
    assert.deepEqual(await seen(), []);
    await loopOf(world.protectScans, 'operations-scan-retention').runOnce();
    const { rows } = await world.database.pool.query(
      'select count(*)::int as count from port_observations where allocation_id = $1',
      [reader.first.id],
    );
    assert.deepEqual(rows, [{ count: 0 }]);
  });
});

test('NET-2.7.9: the result of a manual scan stays as it is when a newer hourly scan arrives', async () => {
  const reader = await createReader('Kept');
  const requests = await request(reader);
  const { id } = requests.find((each) => each.allocationId === reader.first.id)!;
  await deliver([scanOf(reader.first, { request_id: id, endedSecondsAgo: 600, ports: [22, 80] })]);
  await deliver([scanOf(reader.first, { endedSecondsAgo: 1, ports: [22], profile: 'common' })]);
  assert.deepEqual(await openOf(reader), [22]);
  const { rows } = await world.database.pool.query(
    'select jsonb_array_length(services) as count, state from port_scans where request_id = $1',
    [id],
  );
  assert.deepEqual(rows, [{ count: 2, state: 'complete' }]);
});

test('NET-4.f: a result whose times or ports contradict one another is refused with the field, and nothing is stored', async () => {
  const reader = await createReader('Invalid');
  const finished = secondsAgo(10);
  const bad = [
    scanOf(reader.first, { finished_at: secondsAgo(-600) }),
    scanOf(reader.first, { started_at: secondsAgo(1) }),
    scanOf(reader.first, { services: [serviceOf(finished, 22), serviceOf(finished, 22)] }),
  ];
  for (const scan of bad) {
    const answer = await fetch(url('port-scans/'), {
      ...{ method: 'POST', headers: headers() },
      body: JSON.stringify({
        ...{ contract_version: 1, source_site_id: 7, cluster_ids: [world.clusterId] },
        results: [scanOf(reader.first), scan],
      }),
    });
    assert.equal(answer.status, 422);
    assert.match(await answer.text(), /results\.1\./);
  }
  assert.deepEqual(await openOf(reader), []);
});

test('NET-3.1: requests of a released address end and are not fetched', async () => {
  const reader = await createReader('Released');
  const requests = await request(reader);
  await say(requests[0]!.id, 'running', startedNow());
  await world.servers.destroyServer(systemActor, null, reader.serverId);
  await world.jobs.drain();
  assert.ok(!(await fetchAll(500)).some((each) => each.virtual_machine_id === reader.serverId));
  await keeper();
  const { rows } = await world.database.pool.query(
    'select id, state from scan_requests where server_id = $1 order by state desc',
    [reader.serverId],
  );
  assert.deepEqual(
    rows.map(({ id, state }) => [id === requests[0]!.id, state]),
    [[true, 'partial'], ...requests.slice(1).map(() => [false, 'cancelled'])],
  );
});
