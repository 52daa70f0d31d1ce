/** Compares what a monitor stored of scans with what the models of its sensors hold. */
import type { ScanStage } from '#monitor/scans/testing/scan-world.ts';
import type { ReportModel } from './report-model.ts';

/** The time of a report that was ahead is the monitor's own, which the model knows about. */
const aboutMs = 60_000;

interface StoredPort {
  key: string;
  first: Date;
  observed: Date;
  closed: Date | null;
  scan: string;
  product: string | null;
  version: string | null;
}

export async function findStoredFaults(
  stage: ScanStage,
  sensors: readonly { id: number; model: ReportModel }[],
  startedMs: number,
): Promise<{ faults: string[]; stored: number }> {
  const faults: string[] = [];
  let stored = 0;
  for (const { id, model } of sensors) {
    const scans = await readScans(stage, id);
    const ports = await readPorts(stage, id);
    stored += scans.size + ports.length;
    const of = (text: string) => faults.push(`sensor ${id}: ${text}`);
    for (const [scan, { result, target }] of model.scans) {
      const right = `${target} ${result?.state ?? 'running'}`;
      if (scans.get(scan) !== right) of(`scan ${scan} is ${scans.get(scan) ?? 'missing'}, not ${right}`);
      scans.delete(scan);
    }
    for (const scan of scans.keys()) of(`scan ${scan} is stored and must not be`);
    const seen = new Set(ports.map(({ key }) => key));
    for (const key of model.ports.keys()) if (!seen.has(key)) of(`${key} is missing`);
    for (const port of ports) {
      const fault = faultOf(port, model, startedMs);
      if (fault !== null) of(`${port.key} ${fault}`);
    }
  }
  // Pages read all of it.
  await stage.monitor.scans.listAttempts(stage.siteId, 100_000);
  await stage.monitor.scans.listOpenPorts(stage.siteId, 100_000);
  return { faults, stored };
}

function faultOf(port: StoredPort, model: ReportModel, startedMs: number): string | null {
  const right = model.ports.get(port.key);
  if (!right) return 'is stored and must not be';
  const isAbout = (at: Date | null, ms: number | null) => {
    if (at === null || ms === null) return at === null && ms === null;
    return Math.abs(at.getTime() - ms) <= (ms >= startedMs ? aboutMs : 0);
  };
  if (!isAbout(port.observed, right.observedMs)) return `was seen ${port.observed.toISOString()}`;
  if (!isAbout(port.first, right.firstMs)) return `was first seen ${port.first.toISOString()}`;
  if (!isAbout(port.closed, right.closedMs)) return `is closed: ${port.closed?.toISOString()}`;
  if (port.first > port.observed || (port.closed !== null && port.closed < port.observed))
    return 'has no order of times';
  if (port.scan !== right.scanId) return `is of scan ${port.scan}`;
  const said = JSON.stringify([port.product, port.version]);
  return said === JSON.stringify([right.product, right.version]) ? null : `says ${said}`;
}

/** By id, `target state`. */
async function readScans({ pool }: ScanStage, sensorId: number): Promise<Map<string, string>> {
  const { rows } = await pool.query<{ id: string; said: string }>(
    `select a.scan_id as id, 't' || t.id || ' ' || a.state as said from scan_attempts a
     left join scan_targets t on t.sensor_id = a.sensor_id and t.vm_id = a.vm_id and t.address = a.address
     where a.sensor_id = $1`,
    [sensorId],
  );
  return new Map(rows.map(({ id, said }) => [id, said]));
}

/** Of the servers that the sensor's plan named. */
async function readPorts({ pool }: ScanStage, sensorId: number): Promise<StoredPort[]> {
  const { rows } = await pool.query<StoredPort>(
    `select 't' || t.id || ' ' || o.profile || ' ' || o.transport || '/' || o.port as key, o.first_observed_at as first,
       o.observed_at as observed, o.closed_at as closed, o.scan_id as scan, o.product, o.version
     from scan_observations o join scan_targets t on t.cluster_id = o.cluster_id and t.vm_id = o.vm_id and t.address = o.address
     where t.sensor_id = $1`,
    [sensorId],
  );
  return rows;
}
