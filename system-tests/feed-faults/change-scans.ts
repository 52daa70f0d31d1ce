/**
 * Port scans that end while the monitor delivers: a sensor's own ones, and those that customers request, which start, go on,
 * end, are cancelled, and are reported after that.
 */
import { randomUUID } from 'node:crypto';
import type { ScanReport, ScanResult } from '#contracts/sensor-api/port-scans.ts';
import type { Pair, ScannedTarget } from './pair.ts';

const ports = [22, 25, 80, 443, 8080];
/** Reports lie within the last 80 minutes: servers have their addresses longer. */
const firstMs = 4_800_000;
const stepMs = 150;

/** Times of a sensor's reports, each later than all before it. */
export function createScanClock(): () => string {
  let atMs = Date.now() - firstMs;
  return () => {
    atMs += stepMs;
    return new Date(atMs).toISOString();
  };
}

export interface ScanChanges {
  /** One random change, and one scan of the sensor's own that ends. */
  change(): Promise<void>;
  /** Operations takes scans again. */
  settle(): Promise<void>;
}

interface Requested {
  id: string;
  address: string;
  hasStarted: boolean;
}

export function createScans(
  pair: Pair,
  random: (below: number) => number,
  nextAt: () => string,
): ScanChanges {
  const { monitor, operations, sensor, targets } = pair;
  const report = (body: ScanReport) => monitor.scans.receive(sensor, body);
  const targetOf = (address: string) => targets.find((one) => one.address === address)!;

  /** Requests that the monitor knows in these states, without a result. */
  async function listRequested(states: readonly string[]): Promise<Requested[]> {
    const { rows } = await monitor.database.pool.query<Requested>(
      `select r.id, host(r.address) as address, a.started_at is not null as "hasStarted"
       from scan_requests r left join scan_attempts a on a.request_id = r.id
       where r.state = any($1) and a.result_at is null order by r.id`,
      [states],
    );
    return rows;
  }

  /** The sensor starts a claimed request, says that it goes on, or ends it. */
  async function goOn({ id, address, hasStarted }: Requested): Promise<void> {
    const attempt = {
      ...{ plan_revision: 1, scan_id: id, scan_request_id: id, target_id: targetOf(address).targetId },
    };
    if (!hasStarted)
      await report({ kind: 'started', ...attempt, at: nextAt(), profile: 'full', pool: 'customer' });
    else if (random(3) > 0)
      await report({
        ...{ kind: 'heartbeat', ...attempt, at: nextAt(), phase: 'udp_discovery' },
        ...{ percent: random(100), paused_for: null },
      });
    else await report(resultOf(targetOf(address), id, nextAt(), random));
  }

  /** The sensor ends a request that has ended for the monitor, which may lose its connection at that moment. */
  async function endLate(): Promise<void> {
    const [late] = await listRequested(['ended']);
    if (!late) return;
    await report(resultOf(targetOf(late.address), late.id, nextAt(), random));
    if (random(3) === 0) await pair.changeConnection();
  }

  const setPermission = (isGranted: boolean) =>
    operations.database.pool.query(
      `update admin_projects set permissions = array_remove(permissions, 'protect_port_scan_ingest') || $1::text[]`,
      [isGranted ? ['protect_port_scan_ingest'] : []],
    );

  return {
    async change() {
      const target = targets[random(targets.length)]!;
      if (random(4) === 0) await request(pair, target);
      if (random(10) === 0) await cancel(pair, target);
      if (random(6) === 0) await endLate();
      if (random(60) === 0) await pair.changeConnection();
      if (random(40) === 0) await setPermission(false);
      else if (random(4) === 0) await setPermission(true);
      const claimed = await listRequested(['claimed']);
      if (claimed.length > 0 && random(2) === 0) await goOn(claimed[random(claimed.length)]!);
      await report(resultOf(target, null, nextAt(), random));
    },
    async settle() {
      await setPermission(true);
    },
  };
}

/** A customer asks, unless the address has a request that is not final. */
async function request(
  { operations }: Pair,
  { allocationId, serverId, address }: ScannedTarget,
): Promise<void> {
  await operations.database.pool.query(
    `insert into scan_requests (kind, allocation_id, cluster_id, tenant_id, server_id, address)
     select 'manual', $1, cluster_id, tenant_id, id, $3 from servers where id = $2
     on conflict do nothing`,
    [allocationId, serverId, address],
  );
}

/** A customer switches the protection views off: what is queued is cancelled (NET-1.6). */
async function cancel({ operations, finals }: Pair, { serverId }: ScannedTarget): Promise<void> {
  await operations.database.db
    .transaction()
    .execute((tx) => operations.protectScans.cancelQueued(tx, serverId));
  const { rows } = await operations.database.pool.query<{ id: string }>(
    "select id from scan_requests where server_id = $1 and state = 'cancelled'",
    [serverId],
  );
  for (const { id } of rows) if (!finals.has(id)) finals.set(id, 'cancelled');
}

function resultOf(
  target: ScannedTarget,
  requestId: string | null,
  at: string,
  random: (below: number) => number,
): ScanResult {
  const startedAt = new Date(Date.parse(at) - 100).toISOString();
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
        // One of three is seen open and not identified.
        ...{
          method: random(3) > 0 ? ('probed' as const) : ('table' as const),
          confidence: 10,
          tunnel: null,
          cpe: [],
        },
      })),
  };
}
