/** A customer changes a server in the portal; the operator of its site sees that and when on a chart, and no other site does. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor as monitorActor } from '#monitor/operators/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/create-world.ts';
import { visit } from '#operations/testing/visit.ts';
import { findInRows } from '#service-kit/testing/find-in-rows.ts';

let operations: World;
let monitor: MonitorServer;

before(async () => {
  operations = await createWorld();
  monitor = await startMonitorServer();
});
after(async () => {
  await monitor?.[Symbol.asyncDispose]();
  await operations?.[Symbol.asyncDispose]();
});

async function flagsOf(siteId: number, path = `/sites/${siteId}/traffic.json`): Promise<string[][]> {
  const viewer = await monitor.signIn('viewer');
  const { status, text } = await viewer.get(path);
  assert.equal(status, 200, text.slice(0, 300));
  return (JSON.parse(text) as { flags: { text: string; href: string }[] }).flags.map((one) => [
    one.text,
    one.href,
  ]);
}

test('a firewall that a customer changes is a flag of the monitor’s charts, and what was changed is nowhere in the monitor', async () => {
  const { sites, connection, inventory } = monitor.monitor;
  const customer = await operations.createCustomer('Flagged');
  const name = 'server-of-a-changed-firewall';
  const { serverId, allocations } = await operations.deploy(customer.tenant, name);
  const { id } = await operations.adminProjects.create(systemActor, {
    ...{ name: 'Monitor', permissions: ['vm_inventory_read'], clusterIds: null },
  });
  const { token } = await operations.adminProjects.issueToken(systemActor, id, null);
  await connection.save(monitorActor, { baseUrl: operations.url, token, isEnabled: true });
  await sites.mapCluster(monitorActor, operations.clusterId, monitor.siteId);
  const other = await sites.create(monitorActor, 'Other');
  await inventory.loop.runOnce();

  const portal = await visit(operations, customer.email, '/client/');
  const peers = '2001:db8:47b1:14c9:a6d3:59e7:8f2c:b60d';
  const changed = { peers, description: 'for the secret door of the office' };
  const answer = await portal.post(`/client/servers/${serverId}/firewall/add`, {
    ...{ direction: 'inbound', action: 'accept', protocol: 'tcp', ports: '47114', version: '0' },
    ...changed,
  });
  assert.equal(answer.status, 303);
  await operations.jobs.drain();
  await inventory.loop.runOnce();
  assert.equal((await inventory.state()).lastError, null);

  const addresses = allocations.map(({ address }) => address);
  const [flag, ...more] = (await flagsOf(monitor.siteId)).filter(([text]) => text!.includes('firewall'));
  assert.deepEqual([flag![0], more], [`${name}: firewall changed`, []]);
  const path = decodeURIComponent(flag![1]!);
  assert.ok(addresses.some((address) => path === `/sites/${monitor.siteId}/addresses/${address}`));
  for (const address of addresses) {
    const ofAddress = `/sites/${monitor.siteId}/addresses/${encodeURIComponent(address)}/chart.json`;
    assert.ok(
      (await flagsOf(monitor.siteId, ofAddress)).some(([text]) => text === flag![0]),
      address,
    );
  }
  assert.deepEqual(await flagsOf(other.id), []);

  const { pool } = monitor.database;
  const secret = { ...changed, email: customer.email };
  assert.notDeepEqual(await findInRows(pool, { name }), [], 'what the monitor has is found');
  assert.deepEqual(await findInRows(pool, secret), []);
  const found = (await findInRows(operations.database.pool, secret)).map((place) => place.split(' ')[0]);
  assert.deepEqual([...new Set(found)].sort(), ['description', 'email', 'peers'], 'and so are these');
});
