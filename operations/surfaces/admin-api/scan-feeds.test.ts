import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { scanOf } from '#operations/testing/scan-of.ts';
import { createScanStage, quiet, type ScanStage } from './testing/scan-stage.ts';

let stage: ScanStage;
before(async () => {
  stage = await createScanStage();
});
after(() => stage[Symbol.asyncDispose]());

test('NET-4.e: a page takes one request of each account in turn, and none is lost while others end', async () => {
  const [one, two] = [await stage.createReader('Fair one'), await stage.createReader('Fair two')];
  await stage.fillPending(one.first, 6);
  await stage.fillPending(two.first, 2);
  const mine = [one.tenant.id, two.tenant.id];
  const all = (await stage.fetchAll(500)).filter((each) => mine.includes(each.billing_account_id));
  assert.deepEqual(
    all.map(({ billing_account_id: id }) => mine.indexOf(id)),
    [0, 1, 0, 1, 0, 0, 0, 0],
  );
  const first = await stage.fetchPage('?limit=3');
  await stage.world.database.pool.query(
    "update scan_requests set state = 'cancelled', finished_at = svc_now() where id = any($1)",
    [first.requests.map(({ id }) => id)],
  );
  const seen = new Set(first.requests.map(({ id }) => id));
  for (let after = first.next_after; after !== null; ) {
    const page = await stage.fetchPage(`?limit=3&after=${after}`);
    for (const { id } of page.requests) {
      assert.ok(!seen.has(id));
      seen.add(id);
    }
    after = page.next_after;
  }
  assert.ok(all.every(({ id }) => seen.has(id)));
  assert.equal((await fetch(stage.url('scan-requests/?after=x'), { headers: stage.headers() })).status, 422);
});

test('NET-5.2: requests and results need their permission, and a project sees its own clusters alone', async () => {
  const reader = await stage.createReader('Scopes');
  const [{ id } = { id: '' }] = await stage.request(reader);
  const other = await stage.world.createToken(['ddos_incident_ingest']);
  for (const answer of [
    await fetch(stage.url('scan-requests/'), { headers: stage.headers(other) }),
    await stage.postUpdates([], 7, other),
  ])
    assert.equal(answer.status, 403);
  const foreign = await stage.world.createToken(['protect_port_scan_ingest'], [stage.world.clusterId + 1]);
  assert.deepEqual((await stage.fetchPage('', foreign)).requests, []);
  const answer = await stage.postUpdates([{ id, state: 'claimed', ...quiet }], 7, foreign);
  assert.deepEqual(await answer.json(), { outcomes: [{ id, outcome: 'unknown' }] });
  assert.deepEqual(await stage.deliver([scanOf(reader.first)], 7, foreign), ['unmatched']);
  assert.equal(await stage.say(randomUUID(), 'claimed'), 'unknown');
  assert.equal((await stage.postUpdates([{ id, state: 'running', ...quiet }])).status, 422);
  const discovery = await fetch(`${stage.world.url}/api/admin/v1/discovery/`, { headers: stage.headers() });
  const { capabilities } = (await discovery.json()) as { capabilities: Record<string, unknown> };
  assert.deepEqual(capabilities, { protect_port_scan_ingest: true, protect_port_scan_ingest_version: 1 });
});

test('NET-2.7.9: a request keeps its id for good, and a changed connection has a new revision', async () => {
  const reader = await stage.createReader('Revision');
  await stage.request(reader);
  const project = await stage.world.adminProjects.create(systemActor, {
    ...{ name: 'Revised', permissions: ['protect_port_scan_ingest'], clusterIds: null },
  });
  const { token: bearer } = await stage.world.adminProjects.issueToken(systemActor, project.id, null);
  const mine = async () =>
    (await stage.fetchAll(500, bearer)).filter((each) => each.virtual_machine_id === reader.serverId);
  const before = await mine();
  assert.deepEqual(await mine(), before);
  await stage.world.adminProjects.update(systemActor, project.id, {
    ...{ name: 'Revised', permissions: ['protect_port_scan_ingest'], clusterIds: [stage.world.clusterId] },
  });
  const again = await mine();
  assert.deepEqual(
    again.map(({ id }) => id),
    before.map(({ id }) => id),
  );
  assert.ok(again.every(({ revision }, index) => revision > before[index]!.revision));
});
