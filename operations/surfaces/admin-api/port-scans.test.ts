import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ScanProfile } from '#contracts/port-scan/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { secondsAgo } from '#operations/testing/incident-of.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
import { type ScanOptions, scanOf, serviceOf } from '#operations/testing/scan-of.ts';
import { createScanStage, type ScanStage } from './testing/scan-stage.ts';

let stage: ScanStage;
before(async () => {
  stage = await createScanStage();
});
after(() => stage[Symbol.asyncDispose]());

test('NET-2.7.11: a result of another address, assignment or account, or of a released address, is unmatched', async () => {
  const reader = await stage.createReader('Owned');
  const other = await stage.createReader('Other owner');
  const [{ id } = { id: '' }] = await stage.request(other);
  const wrong = [
    scanOf({ ...reader.first, address: other.first.address }),
    scanOf({ ...reader.first, assignedAt: secondsAgo(60) }),
    scanOf({ ...reader.first, id: other.first.id }),
    scanOf(reader.first, { endedSecondsAgo: 2 * 3600 }),
    scanOf(reader.first, { request_id: id }),
  ];
  assert.deepEqual(new Set(await stage.deliver(wrong)), new Set(['unmatched']));
  assert.deepEqual(await stage.openOf(reader), []);
  await stage.world.servers.destroyServer(systemActor, null, reader.serverId);
  await stage.world.jobs.drain();
  assert.deepEqual(await stage.deliver([scanOf(reader.first)]), ['unmatched']);
  const { rows } = await stage.world.database.pool.query('select 1 from port_scans where server_id = $1', [
    reader.serverId,
  ]);
  assert.deepEqual(rows, []);
});

test('NET-2.7.11: what was found of an address is not shown to its next owner, and not to the last one any more', async () => {
  const before = await stage.createReader('Before');
  const next = await stage.createReader('Next');
  await stage.deliver([scanOf(before.first)]);
  assert.deepEqual(await stage.openOf(before), [22]);
  await stage.world.database.pool.query('update allocations set released_at = svc_now() where id = $1', [
    before.first.id,
  ]);
  await stage.world.database.pool.query(
    `insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary)
     select pool_id, cluster_id, $2, $3, address, prefix_length, gateway, false from allocations where id = $1`,
    [before.first.id, next.tenant.id, next.serverId],
  );
  for (const reader of [before, next]) {
    const { open, closed, scans } = await stage.read(reader);
    assert.deepEqual([open, closed, scans], [[], [], []]);
  }
});

test('NET-2.7.11: another site may not deliver results while the first one does', async () => {
  const { first } = await stage.createReader('Source');
  assert.deepEqual(await stage.deliver([scanOf(first)]), ['accepted']);
  assert.deepEqual(await stage.deliver([scanOf(first)], 8), ['source_conflict']);
  await stage.later('3 hours 1 second', async () => {
    assert.deepEqual(await stage.deliver([scanOf(first)], 8), ['accepted']);
  });
});

test('NET-2.7.10: a complete scan closes what its own profile found before, a partial one nothing', async () => {
  const reader = await stage.createReader('Closing');
  const scan = (endedSecondsAgo: number, profile: ScanProfile, ports: ScanOptions['ports'], more = {}) =>
    stage.deliver([scanOf(reader.first, { endedSecondsAgo, profile, ports: ports ?? [], ...more })]);
  const closed = async () => (await stage.read(reader)).closed.map(({ port }) => port);
  await scan(3000, 'full', [22, 80, 31_337, 'udp/53']);
  await scan(2000, 'full', [443], { state: 'partial' });
  assert.deepEqual(await stage.openOf(reader), [22, 80, 443, 31_337, 'udp/53']);
  await scan(1900, 'common', [22, 8080]);
  assert.deepEqual(await stage.openOf(reader), [22, 80, 443, 8080, 31_337, 'udp/53'], 'full evidence stays');
  await scan(1800, 'common', [], { state: 'partial' });
  assert.deepEqual(await closed(), []);
  await scan(1000, 'common', [22]);
  assert.deepEqual(await closed(), [8080]);
  await scan(300, 'full', [443]);
  assert.deepEqual(await stage.openOf(reader), [22, 443], 'common evidence of 22 stays');
  assert.deepEqual(await closed(), [80, 8080, 31_337, 53]);
  await scan(200, 'common', []);
  assert.deepEqual(await stage.openOf(reader), [443]);
  await scan(2500, 'full', [8443, 31_337]);
  await scan(1500, 'common', [22, 25]);
  assert.deepEqual(await stage.openOf(reader), [443], 'delivered late');
  await scan(100, 'common', [22]);
  assert.deepEqual(await stage.openOf(reader), [22, 443], 'open again');
});

test('NET-2.7.10: a partial scan leaves what was found before as it is, with its own times', async () => {
  const reader = await stage.createReader('Kept times');
  await stage.deliver([scanOf(reader.first, { endedSecondsAgo: 3000, ports: [22, 80] })]);
  const before = (await stage.read(reader)).open;
  await stage.deliver([scanOf(reader.first, { endedSecondsAgo: 10, ports: [80], state: 'partial' })]);
  const after = (await stage.read(reader)).open;
  assert.deepEqual(after[0], before[0], 'not seen by the partial scan');
  assert.deepEqual(after[1]!.firstObservedAt, before[1]!.firstObservedAt);
  assert.ok(after[1]!.observedAt > before[1]!.observedAt);
  await stage.deliver([scanOf(reader.first, { endedSecondsAgo: 2000, ports: [80], state: 'partial' })]);
  assert.deepEqual((await stage.read(reader)).open, after, 'delivered late');
});

test('NET-2.7.10: common evidence is stale after 2 hours, full after 27, and all is gone after seven days', async () => {
  const reader = await stage.createReader('Fresh');
  await stage.deliver([
    scanOf(reader.first, { endedSecondsAgo: 20, ports: [22, 9999] }),
    scanOf(reader.first, { endedSecondsAgo: 0, ports: [22, 9999, 80], profile: 'common' }),
  ]);
  const seen = async () =>
    (await stage.world.protectScans.read(systemActor, reader.subject)).open.map(
      ({ port, profile, freshness }) => `${port} ${profile} ${freshness}`,
    );
  const at = (moved: string, expected: string[]) =>
    stage.later(moved, async () => assert.deepEqual(await seen(), expected, moved));
  await at('1 hour', ['22 common fresh', '80 common fresh', '9999 common fresh']);
  await at('3 hours', ['22 full fresh', '80 common stale', '9999 full fresh']);
  for (const moved of ['28 hours', '6 days 23 hours'])
    await at(moved, ['22 common stale', '80 common stale', '9999 common stale']);
  await stage.later('7 days 1 minute', async () => {
    assert.deepEqual(await seen(), []);
    await loopOf(stage.world.protectScans, 'operations-scan-retention').runOnce();
    const { rows } = await stage.world.database.pool.query(
      'select count(*)::int as count from port_observations where allocation_id = $1',
      [reader.first.id],
    );
    assert.deepEqual(rows, [{ count: 0 }]);
  });
});

test('NET-2.7.9: the result of a manual scan stays as it is when a newer hourly scan arrives', async () => {
  const reader = await stage.createReader('Kept');
  const requests = await stage.request(reader);
  const { id } = requests.find((each) => each.allocationId === reader.first.id)!;
  await stage.deliver([scanOf(reader.first, { request_id: id, endedSecondsAgo: 600, ports: [22, 80] })]);
  await stage.deliver([scanOf(reader.first, { endedSecondsAgo: 1, ports: [22], profile: 'common' })]);
  assert.deepEqual(await stage.openOf(reader), [22, 80]);
  const { rows } = await stage.world.database.pool.query(
    'select jsonb_array_length(services) as count, state from port_scans where request_id = $1',
    [id],
  );
  assert.deepEqual(rows, [{ count: 2, state: 'complete' }]);
});

test('NET-4.f: a result whose times or ports contradict one another is refused with the field, and nothing is stored', async () => {
  const reader = await stage.createReader('Invalid');
  const finished = secondsAgo(10);
  const bad = [
    scanOf(reader.first, { finished_at: secondsAgo(-600) }),
    scanOf(reader.first, { started_at: secondsAgo(1) }),
    scanOf(reader.first, { services: [serviceOf(finished, 22), serviceOf(finished, 22)] }),
  ];
  for (const scan of bad) {
    const answer = await fetch(stage.url('port-scans/'), {
      ...{ method: 'POST', headers: stage.headers() },
      body: JSON.stringify({
        ...{ contract_version: 1, source_site_id: 7, cluster_ids: [stage.world.clusterId] },
        results: [scanOf(reader.first), scan],
      }),
    });
    assert.equal(answer.status, 422);
    assert.match(await answer.text(), /results\.1\./);
  }
  assert.deepEqual(await stage.openOf(reader), []);
});
