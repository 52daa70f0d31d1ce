/** A site with two servers of two customers and a little traffic of both. */
import { systemActor } from '#monitor/operators/index.ts';
import {
  captureMinute,
  createMonitorWorld,
  createSpool,
  host,
  type MonitorWorld,
  testMinute,
  usageRow,
} from '#monitor/testing/index.ts';

export const first = '192.0.2.10';
export const second = '192.0.2.11';
export const peer = '198.51.100.7';

/** Three minutes of two addresses, the one in the middle not observed. */
export async function createTraffic(): Promise<MonitorWorld> {
  const world = await createMonitorWorld();
  const minute = (at: number, scale: number) =>
    captureMinute({
      minute: at,
      hosts: [host(first, 5000 * scale, 700), host(second, 300, 100)],
      usage: [
        usageRow({ clientBytes: 700, serverBytes: 4000 * scale, packets: 30 }),
        usageRow({ name: 'example.org', serverBytes: 1000 * scale, clientBytes: 0, server: '203.0.113.5' }),
        usageRow({ client: peer, server: second, direction: 'inbound', serverPort: 22, clientBytes: 300 }),
      ],
    });
  await world.apply(createSpool().upload([minute(testMinute, 1), minute(testMinute + 120, 3)]));
  await world.sites.mapCluster(systemActor, 7, world.siteId);
  await world.rows(
    `insert into inventory_vms (cluster_id, vm_id, name, state, updated_at) values (7, 1, 'web 1', 'running', now()), (7, 2, 'db', 'running', now())`,
  );
  await world.rows(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at, is_supported)
    values (1, 41, 1, 7, $1, 'x', true), (2, 42, 2, 7, $2, 'x', true)`,
    [first, second],
  );
  return world;
}

/** Those minutes. */
export const range = {
  from: new Date(testMinute * 1000).toISOString(),
  to: new Date((testMinute + 180) * 1000).toISOString(),
};
