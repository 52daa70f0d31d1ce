/** Services whose versions change from scan to scan, and records of the vulnerability database that come and go. */
import { randomUUID } from 'node:crypto';
import type { ScanService } from '#contracts/port-scan/index.ts';
import type { ScanResult } from '#contracts/sensor-api/port-scans.ts';
import { copyRecords, nginx, openssh } from '#monitor/vulnerabilities/testing/assess-world.ts';
import { records } from '#monitor/vulnerabilities/testing/records/index.ts';
import type { Pair } from './pair.ts';

const versions = ['7.2', '8.5', '9.6', '9.8'];
const nginxVersions = ['1.14.0', '1.20.1', '1.25.3'];

export interface FindingChanges {
  change(): Promise<void>;
  /** Everything is assessed. */
  settle(): Promise<void>;
}

export function createFindings(
  pair: Pair,
  random: (below: number) => number,
  nextAt: () => string,
): FindingChanges {
  const { monitor, sensor, targets } = pair;
  let isCopied = false;
  const any = <T>(list: readonly T[]) => list[random(list.length)]!;
  const assess = () => monitor.vulnerabilities.assessor.runOnce();

  /** A complete scan that finds some services; one that it does not find is closed. */
  async function scan(): Promise<void> {
    const at = nextAt();
    const scanId = randomUUID();
    const found = [openssh(any(versions)), openssh(any(versions), { port: 2222 }), nginx(any(nginxVersions))];
    const services = found
      .filter(() => random(4) > 0)
      .map(
        (one): ScanService => ({
          ...{ transport: 'tcp', port: 22, service: null, product: null, version: null, extra_info: null },
          ...{ method: 'probed', confidence: 10, tunnel: null, cpe: [] },
          ...one,
          ...{ first_observed_at: at, observed_at: at, scan_id: scanId },
        }),
      );
    const report: ScanResult = {
      ...{ kind: 'result', plan_revision: 1, scan_id: scanId, scan_request_id: null, at, profile: 'full' },
      ...{ target_id: any(targets).targetId, state: 'complete', finished_at: at, notes: [], services },
      started_at: new Date(Date.parse(at) - 100).toISOString(),
      phases: (['tcp', 'udp'] as const).map((transport) => ({
        ...{ transport, ports_asked: 65_535, ports_answered: 65_535, filtered: 0, silent: 0, finished: true },
      })),
    };
    await monitor.scans.receive(sensor, report);
  }

  /** The copy of the database is refreshed with other records. */
  const refresh = () =>
    copyRecords(
      monitor.database,
      records.filter(() => random(3) > 0),
      ['openssh', 'nginx'],
    );

  return {
    async change() {
      if (!isCopied || random(20) === 0) await refresh();
      isCopied = true;
      await scan();
      if (random(2) === 0) await assess();
    },
    async settle() {
      await assess();
    },
  };
}
