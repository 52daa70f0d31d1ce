import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { secondsAgo } from '#operations/testing/incident-of.ts';
import { scanOf } from '#operations/testing/scan-of.ts';
import { createScanStage, type Reader, type ScanStage, startedNow } from './testing/scan-stage.ts';

let stage: ScanStage;
before(async () => {
  stage = await createScanStage();
});
after(() => stage[Symbol.asyncDispose]());

const statesOf = async (reader: Reader) => (await stage.read(reader)).scans.map(({ state }) => state);

const allocationOf = async (reader: Reader, id: string) => {
  const page = await stage.fetchAll(500);
  const { allocation_id } = page.find((each) => each.id === id)!;
  return reader.allocations.find((each) => each.id === allocation_id)!;
};

test('NET-2.7.1: a click requests every public address of the server once, however often it is repeated', async () => {
  const reader = await stage.createReader('Clicks');
  const clicks = await Promise.all(
    Array.from({ length: 8 }, () => stage.world.protectScans.request(reader.actor, reader.serverId)),
  );
  assert.equal(clicks.filter(({ isNew }) => isNew).length, 1);
  const ids = new Set(clicks.flatMap(({ requests }) => requests.map(({ id }) => id)));
  assert.equal(ids.size, reader.allocations.length);
  const page = (await stage.fetchAll(100)).filter((each) => each.virtual_machine_id === reader.serverId);
  assert.deepEqual(
    page.map(({ address, assigned_at, kind, profile }) => [address, assigned_at, kind, profile]).sort(),
    reader.allocations.map((each) => [each.address, each.assignedAt, 'manual', 'full']).sort(),
  );
  assert.deepEqual(new Set(page.map(({ id }) => id)), ids);
});

test('NET-2.7.1: floating addresses are requested too, private ones and those of other servers are not', async () => {
  const reader = await stage.createReader('Floating');
  const other = await stage.createReader('Fixed');
  await addAddresses(reader, 2);
  await stage.world.database.pool.query(
    `insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary)
     select pool_id, cluster_id, tenant_id, server_id, '10.0.0.9', prefix_length, gateway, false from allocations where id = $1`,
    [reader.first.id],
  );
  const requests = await stage.request(reader);
  const expected = [...reader.allocations.map(({ address }) => address), '192.0.2.1', '192.0.2.2'];
  assert.deepEqual(requests.map(({ address }) => address).sort(), expected.sort());
  assert.deepEqual(await statesOf(other), []);
  await stage.world.database.pool.query("delete from scan_requests where address like '192.0.2.%'");
  await stage.world.database.pool.query("delete from allocations where host(address) like '192.0.2.%'");
});

test('NET-2.7.1: only the customer of a server requests a scan of it, and not with a read key', async () => {
  const reader = await stage.createReader('Owner');
  const other = await stage.createReader('Stranger');
  const request = (actor: Reader['actor']) => stage.world.protectScans.request(actor, reader.serverId);
  await assert.rejects(request(other.actor), { code: 'port_scans.not_found' });
  await assert.rejects(request({ ...reader.actor, canWrite: false }), { code: 'accounts.forbidden' });
  assert.deepEqual(await statesOf(reader), []);
});

test('NET-3.1: a claim leaves a request queued, a reported start makes it running, and its result completes it', async () => {
  const reader = await stage.createReader('Life');
  const [{ id } = { id: '' }, ...others] = await stage.request(reader);
  assert.equal(await stage.say(id, 'claimed'), 'accepted');
  assert.equal(await stage.say(id, 'claimed'), 'unchanged');
  for (const state of ['claimed', 'running', 'withdrawn'] as const)
    assert.equal(
      await stage.say(id, state, state === 'running' ? startedNow() : {}, 8),
      'unknown',
      'another site',
    );
  assert.deepEqual(new Set(await statesOf(reader)), new Set(['queued']));
  const start = startedNow();
  assert.equal(await stage.say(id, 'running', start), 'accepted');
  assert.ok((await statesOf(reader)).includes('running'));
  assert.equal(
    await stage.say(id, 'running', { ...start, heartbeat_at: secondsAgo(1), progress: 40 }),
    'accepted',
  );
  assert.equal(await stage.say(id, 'running', start), 'unchanged', 'a late heartbeat');
  const read = async () =>
    (await stage.world.protectScans.read(systemActor, reader.subject)).scans.find((scan) => scan.id === id)!;
  assert.equal((await read()).progress, 40);
  const at =
    reader.allocations.find(({ address }) => address === undefined) ?? (await allocationOf(reader, id));
  const result = scanOf(at, { request_id: id, endedSecondsAgo: 0, notes: ['silent_udp'] });
  assert.deepEqual(await stage.deliver([result, result]), ['accepted', 'unchanged']);
  assert.equal((await read()).state, 'complete');
  assert.equal((await read()).result?.portsOpen, 1);
  assert.equal(await stage.say(id, 'running', startedNow()), 'unchanged');
  assert.equal((await read()).state, 'complete');
  assert.ok(!(await stage.fetchAll(100)).some((each) => each.id === id));
  assert.equal(others.length, reader.allocations.length - 1);
});

test('NET-3.1: an interrupted scan ends partial; a running request outlives its start window and shows as overdue', async () => {
  const reader = await stage.createReader('Partial');
  const requests = await stage.request(reader);
  const { id } = requests[0]!;
  await stage.say(id, 'running', startedNow());
  await stage.later('23 hours 59 minutes', async () => {
    await stage.keep();
    const states = await statesOf(reader);
    assert.deepEqual(states.toSorted(), [...requests.slice(1).map(() => 'queued'), 'running']);
  });
  await stage.later('24 hours 1 minute', async () => {
    await stage.keep();
    const { scans } = await stage.world.protectScans.read(systemActor, reader.subject);
    const running = scans.find((scan) => scan.id === id)!;
    assert.deepEqual([running.state, running.isOverdue], ['running', true]);
    const unstarted = scans.filter((scan) => scan.id !== id);
    assert.ok(unstarted.every(({ state }) => state === 'expired'));
    for (const { id: other } of requests.slice(1)) assert.equal(await stage.say(other, 'claimed'), 'expired');
  });
  const partial = scanOf(await allocationOf(reader, id), {
    request_id: id,
    state: 'partial',
    notes: ['interrupted'],
  });
  assert.deepEqual(await stage.deliver([partial]), ['accepted']);
  assert.equal(
    (await stage.world.protectScans.read(systemActor, reader.subject)).scans.find((s) => s.id === id)!.state,
    'partial',
  );
});

test('NET-3.1: what is withdrawn before it ran waits for the next claim, what ran ends partial', async () => {
  const reader = await stage.createReader('Withdrawn');
  const [waiting, running] = await stage.request(reader);
  await stage.say(waiting!.id, 'claimed');
  await stage.say(running!.id, 'running', startedNow());
  for (const { id } of [waiting!, running!]) assert.equal(await stage.say(id, 'withdrawn'), 'accepted');
  const states = new Map((await stage.read(reader)).scans.map(({ id, state }) => [id, state]));
  assert.deepEqual([states.get(waiting!.id), states.get(running!.id)], ['queued', 'partial']);
  assert.equal(await stage.say(waiting!.id, 'claimed', {}, 8), 'accepted', 'by another site');
});

test('NET-3.1: requests of a released address end and are not fetched', async () => {
  const reader = await stage.createReader('Released');
  const requests = await stage.request(reader);
  await stage.say(requests[0]!.id, 'running', startedNow());
  await stage.world.servers.destroyServer(systemActor, null, reader.serverId);
  await stage.world.jobs.drain();
  assert.ok(!(await stage.fetchAll(500)).some((each) => each.virtual_machine_id === reader.serverId));
  await stage.keep();
  const { rows } = await stage.world.database.pool.query(
    'select id, state from scan_requests where server_id = $1 order by state desc',
    [reader.serverId],
  );
  assert.deepEqual(
    rows.map(({ id, state }) => [id === requests[0]!.id, state]),
    [[true, 'partial'], ...requests.slice(1).map(() => [false, 'cancelled'])],
  );
});

test('NET-1.6: switching the views off cancels queued manual requests; switching on revives none', async () => {
  const reader = await stage.createReader('Views');
  const requests = await stage.request(reader);
  await stage.say(requests[0]!.id, 'running', startedNow());
  const settings = await stage.world.protectSettings.find(reader.actor, reader.subject);
  await stage.world.protectSettings.change(reader.actor, reader.serverId, { ...settings, viewsOn: false });
  await assert.rejects(stage.request(reader), { code: 'port_scans.views_off' });
  for (const { id } of requests.slice(1)) assert.equal(await stage.say(id, 'claimed'), 'cancelled');
  await stage.world.protectSettings.change(reader.actor, reader.serverId, { ...settings, viewsOn: true });
  const { scans } = await stage.world.protectScans.read(systemActor, reader.subject);
  assert.deepEqual(
    scans.map(({ id, state }) => [id === requests[0]!.id, state]),
    [[true, 'running'], ...requests.slice(1).map(() => [false, 'cancelled'])],
  );
});

test('NET-2.7.2: a new address gets one automatic request while a monitor fetches, and a click takes its place', async () => {
  await stage.fetchPage();
  const reader = await stage.createReader('Automatic');
  await stage.keep();
  await stage.keep();
  const automatic = (await stage.fetchAll(500)).filter((each) => each.virtual_machine_id === reader.serverId);
  assert.deepEqual(
    automatic.map(({ kind }) => kind),
    reader.allocations.map(() => 'automatic'),
  );
  await stage.request(reader);
  assert.equal(await stage.say(automatic[0]!.id, 'running', startedNow()), 'cancelled');
  const manual = (await stage.fetchAll(500)).filter((each) => each.virtual_machine_id === reader.serverId);
  assert.deepEqual(
    manual.map(({ kind }) => kind),
    reader.allocations.map(() => 'manual'),
  );
  await stage.later('6 minutes', async () => {
    const late = await stage.createReader('Unfetched');
    await stage.keep();
    const { scans, isFetched } = await stage.world.protectScans.read(systemActor, late.subject);
    assert.deepEqual([scans, isFetched], [[], false]);
  });
});

test('NET-3.1, NET-8.1: cooldown, addresses of a server and pending addresses of an account are limited', async () => {
  const reader = await stage.createReader('Limits');
  const requests = await stage.request(reader);
  for (const each of requests) {
    const at = reader.allocations.find(({ id }) => id === each.allocationId)!;
    await stage.deliver([scanOf(at, { request_id: each.id })]);
  }
  const refusal = (code: string) => ({ code: `port_scans.${code}` });
  await assert.rejects(stage.request(reader), refusal('cooldown'));
  await stage.later('9 minutes', () => assert.rejects(stage.request(reader), refusal('cooldown')));
  await stage.later('601 seconds', async () => {
    const { pool } = stage.world.database;
    await addAddresses(reader, 33 - reader.allocations.length);
    await assert.rejects(stage.request(reader), refusal('too_many_addresses'));
    await pool.query(
      'delete from allocations where id = (select max(id) from allocations where server_id = $1)',
      [reader.serverId],
    );
    const other = await stage.world.deploy(reader.tenant, 'limits-other');
    await stage.fillPending(other.allocations[0]!, 69);
    await assert.rejects(stage.request(reader), refusal('limit_exceeded'));
    await pool.query(
      "delete from scan_requests where id = (select id from scan_requests where state = 'queued' and server_id = $1 limit 1)",
      [other.serverId],
    );
    assert.equal((await stage.request(reader)).length, 32);
  });
});

test('NET-8.1: servers of an account that are clicked at once never have more than 100 pending addresses together', async () => {
  const reader = await stage.createReader('Crowd');
  const full = await stage.world.deploy(reader.tenant, 'crowd-full');
  const serverIds = [reader.serverId];
  for (const name of ['crowd-1', 'crowd-2', 'crowd-3'])
    serverIds.push((await stage.world.deploy(reader.tenant, name)).serverId);
  // Room for the addresses of one more server.
  await stage.fillPending(full.allocations[0]!, 100 - reader.allocations.length);
  const clicks = await Promise.allSettled(
    serverIds.map((serverId) => stage.world.protectScans.request(reader.actor, serverId)),
  );
  const refusals = clicks.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []));
  assert.deepEqual(refusals, Array(3).fill('port_scans.limit_exceeded'));
});

/** More addresses on the server, as floating ones are. */
async function addAddresses({ first, serverId }: Reader, count: number): Promise<void> {
  await stage.world.database.pool.query(
    `insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary)
     select pool_id, cluster_id, tenant_id, server_id, '192.0.2.0'::inet + n, prefix_length, gateway, false
     from allocations, generate_series(1, $2::int) n where id = $1 and server_id = $3`,
    [first.id, count, serverId],
  );
}
