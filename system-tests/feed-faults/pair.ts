/** A monitor and operations with customers' servers, and a faulty way between them. */
import type { StoredWindow } from '#monitor/live/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import { createWorld as createMonitor, type World as MonitorWorld } from '#monitor/testing/world.ts';
import {
  createWorld as createOperations,
  type World as OperationsWorld,
} from '#operations/testing/create-world.ts';
import { type FaultProxy, type ReceiverPlant, startFaultProxy } from './fault-proxy.ts';
import { plantInMonitor, plantInOperations, type ScanPlant } from './plant-scans.ts';

export const feedNames = ['telemetry', 'live', 'incidents', 'port-scans', 'vulnerabilities'] as const;
export type FeedName = (typeof feedNames)[number];

/** Where each feed delivers. */
export const pathOf: Readonly<Record<FeedName, string>> = {
  telemetry: '/api/admin/v1/protect/telemetry/',
  live: '/api/admin/v1/protect/live/',
  incidents: '/api/admin/v1/protect/incidents/',
  'port-scans': '/api/admin/v1/protect/port-scans/',
  vulnerabilities: '/api/admin/v1/protect/vulnerabilities/',
};

export interface Pair extends AsyncDisposable {
  operations: OperationsWorld;
  monitor: MonitorWorld;
  proxy: FaultProxy;
  sensor: EnrolledSensor;
  addresses: readonly string[];
  /** Since when the servers had their addresses; older minutes are not theirs. */
  ownedSinceMs: number;
  /** What the sensor scans, as its plans name it. */
  targets: readonly ScannedTarget[];
  /** What the live store holds. */
  windows: StoredWindow[];
  /** Requests that have ended, with the states that they ended in. */
  finals: Map<string, string>;
  /** Another revision of the connection: requests are to be confirmed again. */
  changeConnection(): Promise<void>;
  /** One tick of a feed. */
  tick(feed: FeedName): Promise<void>;
  /** The feed's process ends, and another one begins. */
  restart(feed: FeedName): Promise<void>;
}

export interface ScannedTarget {
  targetId: string;
  serverId: number;
  allocationId: number;
  address: string;
}

const customers = 3;

export async function createPair(
  random: (below: number) => number,
  plant: ReceiverPlant | ScanPlant | null,
): Promise<Pair> {
  const operations = await createOperations();
  await plantInOperations(operations, plant);
  const ownedSinceMs = Date.now() - 90 * 60_000;
  const allocated: Omit<ScannedTarget, 'targetId'>[] = [];
  for (let i = 0; i < customers; i += 1) {
    const { tenant } = await operations.createCustomer(`Customer ${i}`);
    for (const name of [`web-${i}`, `db-${i}`]) {
      const { serverId } = await operations.deploy(tenant, name);
      await operations.backdate(serverId, '90 minutes');
      const allocations = await operations.addresses.listAllocationsOfServers([serverId]);
      allocated.push(...allocations.map(({ id, address }) => ({ serverId, allocationId: id, address })));
    }
  }
  const addresses = allocated.map(({ address }) => address);
  const permissions = [
    ...(['protect_telemetry_ingest', 'protect_live_ingest', 'ddos_incident_ingest'] as const),
    ...(['protect_port_scan_ingest', 'protect_vulnerability_ingest'] as const),
  ];
  const token = await operations.createToken([...permissions]);
  const proxy = await startFaultProxy({ target: operations.url, random, plant });

  const monitor = await createMonitor();
  await monitor.sites.mapCluster(systemActor, operations.clusterId, monitor.siteId);
  await monitor.connection.save(systemActor, { baseUrl: proxy.url, token, isEnabled: true });
  await monitor.connection.check();
  const { token: enrolment } = await monitor.sensors.createToken(systemActor, monitor.siteId);
  const names = { host_name: 'node-1', node: 'node-1', sensor_version: '0.2.0' };
  const { credential } = (await monitor.sensors.enrol({ token: enrolment, ...names }))!;
  const sensor = (await monitor.sensors.authenticate(credential))!;

  const targets: ScannedTarget[] = [];
  for (const one of allocated) {
    const { rows } = await monitor.database.pool.query<{ id: number }>(
      `insert into scan_targets (sensor_id, site_id, cluster_id, vm_id, interface_id, address)
       values ($1, $2, $3, $4, 1, $5) returning id`,
      [sensor.id, monitor.siteId, operations.clusterId, one.serverId, one.address],
    );
    targets.push({ ...one, targetId: `t${rows[0]!.id}` });
  }

  const windows: StoredWindow[] = [];
  const source = { listWindows: async () => ({ windows: [...windows], isLimited: false }) };
  const scans = plantInMonitor(monitor, plant);
  const start = (feed: FeedName) => monitor.createFeed({ live: source, scans }).find(feed);
  const running = new Map(feedNames.map((feed) => [feed, start(feed)]));
  const end = (feed: FeedName) => running.get(feed)!.loop.stop();
  return {
    ...{ operations, monitor, proxy, sensor, addresses, ownedSinceMs, targets, windows },
    finals: new Map(),
    async changeConnection() {
      await monitor.database.pool.query('update operations_connection set revision = revision + 1');
      proxy.forgetConfirmed();
    },
    async tick(feed) {
      const result = await running.get(feed)!.runOnce();
      if (typeof result === 'string') throw new Error(`${feed}: no tick: ${result}`);
    },
    async restart(feed) {
      await end(feed);
      running.set(feed, start(feed));
    },
    async [Symbol.asyncDispose]() {
      for (const feed of feedNames) await end(feed);
      await monitor[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
      await operations[Symbol.asyncDispose]();
    },
  };
}
