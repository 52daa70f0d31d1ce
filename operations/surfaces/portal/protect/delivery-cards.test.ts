import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createScanMonitor, type ScanMonitor } from '#operations/testing/deliver-scans.ts';
import { incidentOf } from '#operations/testing/incident-of.ts';
import { createFindingMonitor, projectionOf } from '#operations/testing/projection-of.ts';
import { scanOf } from '#operations/testing/scan-of.ts';
import { visit } from '#operations/testing/visit.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';

let world: World;
let monitor: ScanMonitor;

before(async () => {
  world = await createWorld();
  monitor = await createScanMonitor(world);
});
after(() => world[Symbol.asyncDispose]());

async function createReader(name: string) {
  const customer = await world.createCustomer(name);
  const { serverId } = await world.deploy(customer.tenant, name.toLowerCase());
  await world.backdate(serverId, '3 days');
  const [first] = await world.addresses.listAllocationsOfServers([serverId]);
  const { page } = await visit(world, customer.email, '/client/settings/');
  const card = async (title: string) => {
    const text = await page(`/client/servers/${serverId}/protect`);
    return new RegExp(`<h3>${title}</h3>(.*?)</dl>(?:<p[^>]*>(.*?)</p>)?</div>`, 's')
      .exec(text)![0]
      .replaceAll(/<[^>]+>/g, ' ')
      .replaceAll(/\s+/g, ' ');
  };
  return { first: first!, card };
}

const never = /Last attempt never Last confirmed receipt never Latest acknowledged observation none/;

test('NET-2.9, NET-4.10: the card of port scans tells attempt, receipt, the end of the newest scan, and how many came', async () => {
  const { first, card } = await createReader('Scanned');
  assert.match(await card('Port scans'), never);
  await monitor.deliver(
    scanOf(first, { endedSecondsAgo: 2 * 86_400, profile: 'common' }),
    scanOf(first, { endedSecondsAgo: 3600, profile: 'common' }),
  );
  const text = await card('Port scans');
  assert.match(
    text,
    /observation .{0,40}1 h ago Received 1 scan of 1 address in the last 24 hours Problem none/,
  );
  assert.doesNotMatch(text, /never/);
});

test('NET-2.9: the card of attacks tells the newest observation, and that silence is no fault', async () => {
  const { first, card } = await createReader('Attacked');
  assert.match(await card('Attacks'), never);
  assert.match(
    await card('Attacks'),
    /no incident in the last 24 hours .*Sent only while an incident is active\./,
  );
  const flood = incidentOf(first.address);
  await world.deliverIncidents(flood);
  const text = await card('Attacks');
  assert.match(text, /Received 1 incident of 1 address in the last 24 hours Problem none/);
  assert.doesNotMatch(text, /never/);
});

test('NET-2.9: where another monitor site delivers, an attempt is told and a receipt is not; after two hours without one it is a problem', async () => {
  const { first, card } = await createReader('Contested');
  await monitor.deliver(scanOf(first));
  const { id: projectId } = await world.adminProjects.create(systemActor, {
    ...{ name: 'second monitor', permissions: ['protect_port_scan_ingest'], clusterIds: null },
  });
  const refuse = async () => {
    const { receipts } = await world.protectScans.receive(
      { projectId, clusterIds: null },
      { contract_version: 1, source_site_id: 9, cluster_ids: [world.clusterId], results: [scanOf(first)] },
    );
    assert.equal(receipts[0]!.receipt, 'source_conflict');
  };
  await refuse();
  assert.match(await card('Port scans'), /Received 1 scan .* Problem none/, 'the other one delivers');
  await moveWorldClock(world.database, '150 minutes');
  await refuse();
  assert.match(
    await card('Port scans'),
    /attempt .{0,30}(?:now|\d (?:s|min) ago) Last confirmed receipt .{0,30}\d h ago .* Problem Refused: another monitor site delivers this address\./,
  );
});

test('NET-2.9: the card of potential vulnerabilities tells the newest check, and after a day without one that another monitor site is refused', async () => {
  await moveWorldClock(world.database, '0');
  const { first, card } = await createReader('Checked');
  const title = 'Potential vulnerabilities';
  assert.match(await card(title), never);
  const findings = await createFindingMonitor(world);
  await findings.deliver(projectionOf(first, { checkedSecondsAgo: 3600 }));
  assert.match(
    await card(title),
    /observation .{0,40}1 h ago Received checks of 1 service of 1 address Problem none/,
  );
  const refuse = async () => {
    const { acknowledgements } = await world.protectFindings.receive(findings.sender, {
      ...{ contract_version: 1, source_site_id: 9, cluster_ids: [world.clusterId] },
      projections: [projectionOf(first)],
    });
    assert.equal(acknowledgements[0]!.outcome, 'source_conflict');
  };
  await refuse();
  assert.match(await card(title), /Problem none/, 'the other one delivers');
  await world.database.pool.query(
    "update finding_projections set received_at = received_at - interval '26 hours' where allocation_id = $1",
    [first.id],
  );
  await refuse();
  assert.match(await card(title), /Problem Refused: another monitor site delivers this address\./);
});
