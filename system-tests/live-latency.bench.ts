/**
 * Measures how long after its end a ten-second bucket is in operations, with 200 live targets: a monitor and operations with
 * their loops as they run, and a sensor whose two captures post their windows 0.3 s after each boundary. The customer's page asks
 * every 3 s, so its figure is that of operations plus a part of those. Everything is in one process on one machine.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { encodeLive, type LiveWindow, liveWindowMs } from '#contracts/sensor-api/live-codec.ts';
import { compressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { live } from '#monitor/feeds/index.ts';
import { systemActor as monitorActor } from '#monitor/operators/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';
import { createWorld } from '#operations/testing/create-world.ts';

export const name = 'live-latency';

const servers = Number(process.env.SVC_BENCH_SERVERS ?? 100);
const buckets = Number(process.env.SVC_BENCH_BUCKETS ?? 12);
/** What the sensor waits for before it posts. */
const gatherMs = 300;
/** The page's refresh. */
const pageMs = 3000;

export async function run(report: (line: string) => void): Promise<void> {
  await using operations = await createWorld();
  await using monitor = await startMonitorServer({ SVC_ALLOW_DOCUMENTATION_ADDRESSES: '1' });
  const { tenant } = await operations.createCustomer('Bench');
  // Documentation ranges are too small for them: addresses are made as rows.
  const { serverId } = await operations.deploy(tenant, 'bench');
  const addresses = Array.from({ length: 2 * servers }, (_, i) => `203.0.113.${i + 20}`);
  await operations.database.pool.query(
    `insert into allocations (pool_id, tenant_id, server_id, cluster_id, address, prefix_length, gateway, is_primary)
     select pool_id, tenant_id, server_id, cluster_id, a::inet, prefix_length, gateway, false from allocations, unnest($2::text[]) a
     where id = (select min(id) from allocations where server_id = $1)`,
    [serverId, addresses],
  );
  await operations.backdate(serverId, '1 hour');
  const token = await operations.createToken(['protect_live_ingest', 'protect_telemetry_ingest']);
  const { connection, sites, sensors, feeds, live: store } = monitor.monitor;
  await sites.mapCluster(monitorActor, operations.clusterId, monitor.siteId);
  await connection.save(monitorActor, { baseUrl: operations.url, token, isEnabled: true });
  const enrolment = await sensors.createToken(monitorActor, monitor.siteId);
  const made = await sensors.enrol({
    ...{ token: enrolment.token, host_name: 'node-1', node: 'node-1', sensor_version: '0.2.0' },
  });
  const sensor = (await sensors.authenticate(made!.credential))!;
  const { loop } = feeds.find(live.name);
  await loop.start();
  const runId = randomUUID();
  for (let i = 0; i < buckets; i += 1) {
    const endMs = Math.ceil(Date.now() / liveWindowMs) * liveWindowMs;
    await wait(endMs + gatherMs - Date.now());
    const windows = (['eth0', 'br0'] as const).map((capture) =>
      windowOf(capture, endMs - liveWindowMs, addresses),
    );
    await store.receive(
      sensor,
      compressUpload(encodeLive({ runId, sensorVersion: '0.2.0', windows })),
      'zstd',
    );
  }
  await wait(12_000);
  await loop.stop();
  const { rows } = await operations.database.pool.query<{ seconds: number }>(
    `select extract(epoch from received_at - started_at)::float8 - 10 as seconds from protect_live_buckets order by 1`,
  );
  const seconds = rows.map((row) => row.seconds);
  const at = (share: number) =>
    seconds[Math.min(seconds.length - 1, Math.floor(seconds.length * share))] ?? Number.NaN;
  report(
    `${addresses.length} targets, ${buckets} buckets of 2 captures: ${seconds.length} rows in operations`,
  );
  report(
    `from a bucket's end to operations: median ${at(0.5).toFixed(1)} s, 95th percentile ${at(0.95).toFixed(1)} s, worst ${at(1).toFixed(1)} s`,
  );
  report(
    `to the customer's page, which asks every ${pageMs / 1000} s: at most ${(at(0.95) + pageMs / 1000).toFixed(1)} s at the 95th percentile`,
  );
}

function windowOf(capture: 'eth0' | 'br0', startedAtMs: number, addresses: readonly string[]): LiveWindow {
  const count = addresses.length;
  return {
    capture,
    role: capture === 'eth0' ? 'uplink' : 'bridge',
    startedAtMs,
    observedMs: liveWindowMs,
    totals: {
      ...{ packets: 1000 * count, ipPackets: 1000 * count, ipBytes: 600_000 * count, nonIpPackets: 0 },
      ...{ parserDropped: 0, kernelDropped: 0, detailTruncated: 0 },
    },
    hosts: addresses.map((address, i) => ({
      address,
      rxBytes: 400_000 + i + (startedAtMs % 7919),
      txBytes: 200_000,
      packets: 1000,
    })),
    hostsLeftOut: 0,
  };
}
