/** Histories of interrupted scans, told to a monitor. Only for tests. */
import { type History, type MadeScan, modelOf } from '#contracts/port-scan/testing/interrupted-scans.ts';
import type { ScanResult } from '#contracts/sensor-api/port-scans.ts';
import { listServers, type ScanStage } from './scan-world.ts';

/** Returns what takes one history, and answers with how what is known differs from the model. */
export async function createHistoryTaker(stage: ScanStage) {
  const { monitor, pool, sensorId, siteId } = stage;
  await listServers(pool, [{ serverId: 1, addresses: ['203.0.113.10'] }]);
  const sensor = { id: sensorId, siteId };
  const target = (await monitor.scans.readPlan(sensor)).targets[0]!.target_id;
  return async ({ scans }: History): Promise<string[]> => {
    await pool.query('truncate scan_attempts, scan_observations, scan_identifications');
    for (const scan of scans) await monitor.scans.receive(sensor, reportOf(scan, target));
    const known = await monitor.scans.listEvidence([{ clusterId: 7, serverId: 1 }]);
    const listed = await monitor.scans.listOpenPorts(siteId, 100);
    return [...modelOf(scans)].flatMap(([port, scan]) => {
      const ofPort = (one: { transport: string; port: number }) => `${one.transport}/${one.port}` === port;
      const [evidence, open] = [known.find(ofPort), listed.find(ofPort)];
      const at = scan && Date.parse(scan.finished_at);
      const right = [scan?.scan_id ?? null, at, scan ? 'probed' : undefined];
      const held = [
        evidence?.version,
        scan ? evidence?.observedAtMs : at,
        scan ? evidence?.method : undefined,
      ];
      const shown = [open?.version, open?.identifiedAtMs, scan ? open?.method : undefined];
      return [held, shown]
        .filter((one) => one.join() !== right.join())
        .map((one) => `${port} is known as ${one}, and not ${right}`);
    });
  };
}

const reportOf = (scan: MadeScan, target: string): ScanResult => ({
  ...{ kind: 'result', plan_revision: 1, scan_request_id: null, target_id: target, at: scan.finished_at },
  ...scan,
});
