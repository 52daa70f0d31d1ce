/** A node with servers, and its sensor, as port scans see them. Only for tests. */
import type { ScanProfile, ScanService } from '#contracts/port-scan/index.ts';
import type { ScanPlan, ScanReceipt, ScanReport, ScanResult } from '#contracts/sensor-api/port-scans.ts';
import type { HostInterface } from '#contracts/sensor-api/telemetry.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';
import type { TestDatabase } from '#service-kit/testing/index.ts';

export const clusterId = 7;

export interface ScanServer {
  serverId: number;
  addresses: readonly string[];
  node?: string;
  cluster?: number;
  state?: string;
  mac?: string;
  /** Since an import listed the server, and its interface. */
  age?: string;
  interfaceAge?: string;
}

type Pool = Pick<TestDatabase['pool'], 'query'>;

/** Puts servers in the inventory, each with one interface, as an import would. */
export async function listServers(pool: Pool, servers: readonly ScanServer[]): Promise<void> {
  for (const server of servers) {
    const { serverId, addresses, node = 'hv-1', cluster = clusterId, state = 'running' } = server;
    const { age = '10 seconds', interfaceAge = age } = server;
    const mac = server.mac ?? `52:54:00:00:00:${serverId.toString(16).padStart(2, '0')}`;
    await pool.query(
      `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at, last_seen_at)
       values ($1, $2::int, $3, 'server-' || $2::int, $4, svc_now(), svc_now() - $5::interval)
       on conflict (cluster_id, vm_id) do update set node = excluded.node, state = excluded.state,
         last_seen_at = excluded.last_seen_at, retired_at = null`,
      [cluster, serverId, node, state, age],
    );
    await pool.query(
      `insert into inventory_interfaces (cluster_id, vm_id, interface_id, mac, bridge, addresses, last_seen_at)
       values ($1, $2::int, $2::int + 1000, $3, 'br0', $4::inet[], svc_now() - $5::interval)
       on conflict (cluster_id, vm_id, interface_id) do update set addresses = excluded.addresses,
         last_seen_at = excluded.last_seen_at, retired_at = null`,
      [cluster, serverId, mac, addresses, interfaceAge],
    );
    for (const address of [null, ...addresses])
      await pool.query(
        `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
         values ($1, $2, $3, $4, 'br0', $5::inet, true, svc_now())`,
        [cluster, serverId, node, mac, address],
      );
  }
}

export function hostInterface(part: Partial<HostInterface> & { name: string }): HostInterface {
  const plain = { index: 1, mac: '', kind: '', isUp: true, mtu: 1500, master: '', parent: '', vlan: 0 };
  return { ...plain, addresses: [], ...part };
}

/** A routed host: an uplink, and a bridge with the gateways of its servers. */
export const hostInterfaces = [
  hostInterface({ name: 'uplink0', addresses: ['198.51.100.2/24'] }),
  hostInterface({ name: 'br0', kind: 'bridge', addresses: ['203.0.113.1/24', 'fe80::1/64'] }),
  hostInterface({ name: 'mgmt0', addresses: ['192.0.2.9/24'] }),
];

export async function listInterfaces(
  pool: Pool,
  sensorId: number,
  interfaces: readonly HostInterface[] = hostInterfaces,
  age = '10 seconds',
): Promise<void> {
  await pool.query(
    `insert into host_inventories (sensor_id, observed_at, interfaces, interfaces_left_out, neighbours, neighbours_left_out)
     values ($1, svc_now() - $2::interval, $3, 0, 0, 0)
     on conflict (sensor_id) do update set observed_at = excluded.observed_at, interfaces = excluded.interfaces`,
    [sensorId, age, JSON.stringify(interfaces)],
  );
}

/** `json` is a plan, a receipt or an error. */
export interface ScanAnswer {
  status: number;
  json: ScanPlan & ScanReceipt & { error: { code: string } };
  etag: string;
}

export type ScanStage = Awaited<ReturnType<typeof startScanStage>>;

/** A monitor with a sensor on node hv-1 of cluster 7, captures of `uplink0` and `br0`, and fresh interfaces. */
export async function startScanStage() {
  const server = await startMonitorServer({ SVC_ALLOW_DOCUMENTATION_ADDRESSES: '1' });
  const { monitor, siteId, database } = server;
  const { pool } = database;
  await monitor.sites.mapCluster(systemActor, clusterId, siteId);
  const enrol = async (node: string, site = siteId) => {
    const { token } = await monitor.sensors.createToken(systemActor, site);
    const request = { token, host_name: `host-${node}`, node, sensor_version: '0.1.24' };
    const made = (await monitor.sensors.enrol(request))!;
    await pool.query(
      `insert into captures (site_id, sensor_id, name, role) values ($1, $2, 'uplink0', 'uplink'), ($1, $2, 'br0', 'bridge')`,
      [site, made.sensor_id],
    );
    await listInterfaces(pool, made.sensor_id);
    return { id: made.sensor_id, credential: made.credential };
  };
  const sensor = await enrol('hv-1');
  return {
    ...server,
    pool,
    sensorId: sensor.id,
    enrol,
    /** GET or POST /agent/v1/port-scans as this sensor. */
    ask: (body?: unknown, headers: Record<string, string> = {}) =>
      askScans(server.url, sensor.credential, body, headers),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

export async function askScans(
  url: string,
  credential: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<ScanAnswer> {
  const answer = await fetch(`${url}/agent/v1/port-scans`, {
    headers: {
      authorization: `Bearer ${credential}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return {
    status: answer.status,
    json: text === '' ? null : JSON.parse(text),
    etag: answer.headers.get('etag') ?? '',
  };
}

let scans = 0;
export const scanId = () => {
  scans += 1;
  return `0193a1f0-0000-7000-8000-${scans.toString(16).padStart(12, '0')}`;
};

export const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();

export function service(port: number, change: Partial<ScanService> = {}): ScanService {
  const at = secondsAgo(60);
  return {
    ...{ transport: 'tcp', port, first_observed_at: at, observed_at: at, scan_id: scanId() },
    ...{ service: 'ssh', product: 'OpenSSH', version: '9.6p1', extra_info: null, method: 'probed' },
    ...{ confidence: 10, tunnel: null, cpe: ['cpe:/a:openbsd:openssh:9.6p1'], ...change },
  } as ScanService;
}

/** A complete result of both transports with these open ports, that ended `endedAgo` seconds ago. */
export function result(
  targetId: string,
  profile: ScanProfile,
  ports: readonly number[],
  change: Partial<ScanResult> & { endedAgo?: number } = {},
): ScanResult {
  const { endedAgo = 60, scan_id = scanId(), ...rest } = change;
  const [startedAt, at] = [secondsAgo(endedAgo + 30), secondsAgo(endedAgo)];
  const asked = profile === 'full' ? 65_535 : 100;
  const phase = { ports_asked: asked, ports_answered: asked, filtered: 0, silent: 0, finished: true };
  return {
    ...{ kind: 'result', plan_revision: 1, scan_id, scan_request_id: null, target_id: targetId, at },
    ...{ profile, state: 'complete', started_at: startedAt, finished_at: at, notes: [] },
    phases: [
      { transport: 'tcp', ...phase },
      { transport: 'udp', ...phase },
    ],
    services: ports.map((port) => service(port, { scan_id, first_observed_at: at, observed_at: at })),
    ...rest,
  };
}

/** A report of a scan that has begun. */
export const started = (
  targetId: string,
  id: string,
  change: Partial<Extract<ScanReport, { kind: 'started' }>> = {},
): ScanReport => ({
  ...{ kind: 'started', plan_revision: 1, scan_id: id, scan_request_id: null, target_id: targetId },
  ...{ at: secondsAgo(90), profile: 'full', pool: 'daily', ...change },
});

export const heartbeat = (
  targetId: string,
  id: string,
  change: Partial<Extract<ScanReport, { kind: 'heartbeat' }>> = {},
): ScanReport => ({
  ...{ kind: 'heartbeat', plan_revision: 1, scan_id: id, scan_request_id: null, target_id: targetId },
  ...{ at: secondsAgo(80), phase: 'tcp_discovery', percent: 40, paused_for: null, ...change },
});
