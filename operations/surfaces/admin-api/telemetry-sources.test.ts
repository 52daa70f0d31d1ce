/** Which source a generation's minutes are taken from, and when another one takes over (NET-2.4.7). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { minutesAgo, point } from './testing/telemetry-points.ts';
import { createTelemetrySender, type TelemetrySender } from './testing/telemetry-sender.ts';

let sender: TelemetrySender;
before(async () => {
  sender = await createTelemetrySender();
});
after(() => sender.world[Symbol.asyncDispose]());

test('NET-2.4.7: a second source site of a generation gets source_conflict and changes nothing', async () => {
  await sender.freshAllocation('Conflict');
  const at = minutesAgo(5);
  await sender.receiptsOf(sender.request([sender.target([point(at, { in: 10, out: 10 })])]));
  const other = sender.request([sender.target([point(at, { in: 99, out: 99 })])], { source_site_id: 8 });
  assert.deepEqual(await sender.receiptsOf(other), ['source_conflict']);
  assert.equal((await sender.stored())[0]!.inboundBytes, 10);
});

test('NET-2.4.7: a source is a site of a project: two monitors with equal site numbers do not overwrite one another', async () => {
  await sender.freshAllocation('Two monitors');
  const [one, two] = [await sender.tokenOf('Monitor one'), await sender.tokenOf('Monitor two')];
  assert.equal(await sender.receiptFrom(one.token, 7, 100), 'accepted');
  assert.equal(await sender.receiptFrom(two.token, 7, 999), 'source_conflict');
  assert.equal((await sender.stored())[0]!.inboundBytes, 100);
  assert.equal(await sender.receiptFrom(one.token, 7, 200), 'accepted');
});

test('NET-2.4.7: another source takes a generation over when its owner has been silent for 15 minutes', async () => {
  await sender.freshAllocation('Remapped');
  const monitor = await sender.tokenOf('Monitor that remaps');
  assert.equal(await sender.receiptFrom(monitor.token, 1, 100), 'accepted');
  await sender.silence('14 minutes 59 seconds');
  assert.equal(await sender.receiptFrom(monitor.token, 2, 200), 'source_conflict');
  await sender.silence('15 minutes');
  assert.equal(await sender.receiptFrom(monitor.token, 2, 300), 'accepted');
  assert.equal(await sender.receiptFrom(monitor.token, 1, 400), 'source_conflict');
  assert.equal((await sender.stored())[0]!.inboundBytes, 300);
  const { sources, conflicts } = await sender.world.protectTraffic.readSources(
    systemActor,
    monitor.projectId,
  );
  assert.deepEqual(
    sources.map((row) => [row.siteId, row.generations, row.takenOverAt !== null]),
    [[2, 1, true]],
  );
  assert.deepEqual(
    conflicts.map((row) => [row.siteId, row.ownerSiteId, row.generations]),
    [[1, 2, 1]],
  );
});

test('NET-2.4.7: a delivery that changes nothing tells that the owner is there', async () => {
  await sender.freshAllocation('Quiet owner');
  const monitor = await sender.tokenOf('Quiet monitor');
  assert.equal(await sender.receiptFrom(monitor.token, 1, 100), 'accepted');
  await sender.silence('20 minutes');
  assert.equal(await sender.receiptFrom(monitor.token, 1, 100), 'unchanged');
  assert.equal(await sender.receiptFrom(monitor.token, 2, 200), 'source_conflict');
});

test('NET-2.4.7: an operator hands a generation over at once, and only to the source that waits for it', async () => {
  await sender.freshAllocation('Handed over');
  const [one, two] = [await sender.tokenOf('Old monitor'), await sender.tokenOf('New monitor')];
  await sender.receiptFrom(one.token, 1, 100);
  assert.equal(await sender.receiptFrom(two.token, 4, 200), 'source_conflict');
  const owner = { projectId: one.projectId, siteId: 1 };
  const handOver = (siteId: number) =>
    sender.world.protectTraffic.handOver(systemActor, { projectId: two.projectId, siteId }, owner);
  assert.equal(await handOver(5), false);
  assert.equal(await handOver(4), true);
  assert.equal(await sender.receiptFrom(two.token, 4, 200), 'accepted');
  assert.equal(await sender.receiptFrom(one.token, 1, 100), 'source_conflict');
  assert.equal(await handOver(4), false, 'nothing waits any more');
});

test('NET-2.4.7: a series from before projects were kept belongs to the first delivery of its site', async () => {
  await sender.freshAllocation('From before');
  const [one, two] = [await sender.tokenOf('First monitor'), await sender.tokenOf('Second monitor')];
  await sender.receiptFrom(one.token, 3, 100);
  await sender.world.database.pool.query(
    'update protect_series set source_project_id = null where allocation_id = $1',
    [sender.allocation.id],
  );
  assert.equal(await sender.receiptFrom(two.token, 4, 200), 'source_conflict');
  assert.equal(await sender.receiptFrom(one.token, 3, 300), 'accepted');
  assert.equal(await sender.receiptFrom(two.token, 3, 400), 'source_conflict');
});
