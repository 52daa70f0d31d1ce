/** Port scans that end while the monitor delivers: a sensor's own ones, and those that customers request. */
import { randomUUID } from 'node:crypto';
import type { ScanResult } from '#contracts/sensor-api/port-scans.ts';
import type { Pair, ScannedTarget } from './pair.ts';

const ports = [22, 25, 80, 443, 8080];
/** Each scan is later than all before it, within the last hour. */
const firstMs = 3_600_000;
const stepMs = 200;

export function createScans(pair: Pair, random: (below: number) => number): () => Promise<void> {
  const { monitor, operations, sensor, targets } = pair;
  let atMs = Date.now() - firstMs;
  const report = (body: ScanResult) => monitor.scans.receive(sensor, body);

  function resultOf(target: ScannedTarget, requestId: string | null): ScanResult {
    atMs += stepMs;
    const [startedAt, at] = [new Date(atMs - 100).toISOString(), new Date(atMs).toISOString()];
    const scanId = requestId ?? randomUUID();
    const profile = requestId !== null || random(3) === 0 ? 'full' : 'common';
    const asked = profile === 'full' ? 65_535 : 100;
    const phase = { ports_asked: asked, ports_answered: asked, filtered: 0, silent: 0, finished: true };
    const isWhole = random(4) > 0;
    return {
      ...{ kind: 'result', plan_revision: 1, scan_id: scanId, scan_request_id: requestId, at, profile },
      ...{ target_id: target.targetId, state: isWhole ? 'complete' : 'partial' },
      ...{ started_at: startedAt, finished_at: at, notes: isWhole ? [] : ['interrupted'] },
      phases: [{ transport: 'tcp', ...phase, finished: isWhole }],
      services: ports
        .filter(() => random(2) === 0)
        .map((port) => ({
          ...{ transport: 'tcp' as const, port, first_observed_at: at, observed_at: at, scan_id: scanId },
          ...{ service: 'http', product: null, version: `${random(100)}`, extra_info: null },
          ...{ method: 'probed' as const, confidence: 10, tunnel: null, cpe: [] },
        })),
    };
  }

  /** A customer asks, unless the address has a request that is not final. */
  async function request({ allocationId, serverId, address }: ScannedTarget): Promise<void> {
    await operations.database.pool.query(
      `insert into scan_requests (kind, allocation_id, cluster_id, tenant_id, server_id, address)
       select 'manual', $1, cluster_id, tenant_id, id, $3 from servers where id = $2
       on conflict do nothing`,
      [allocationId, serverId, address],
    );
  }

  /** The sensor ends a request that was claimed. */
  async function endClaimed(): Promise<void> {
    const { rows } = await monitor.database.pool.query<{ id: string; address: string }>(
      `select r.id, host(r.address) as address from scan_requests r where r.state = 'claimed'
         and not exists (select 1 from scan_attempts a where a.request_id = r.id) limit 1`,
    );
    const target = targets.find(({ address }) => address === rows[0]?.address);
    if (target) await report(resultOf(target, rows[0]!.id));
  }

  return async () => {
    const target = targets[random(targets.length)]!;
    if (random(4) === 0) await request(target);
    if (random(3) === 0) await endClaimed();
    await report(resultOf(target, null));
  };
}
