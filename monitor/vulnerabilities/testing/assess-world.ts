/** A monitor with scanned servers and records of the vulnerability database. Only for tests. */
import type { ScanProfile, ScanService } from '#contracts/port-scan/index.ts';
import {
  listServers,
  result,
  secondsAgo,
  service,
  startScanStage,
} from '#monitor/scans/testing/scan-world.ts';
import type { TestDatabase } from '#service-kit/testing/index.ts';
import type { Advisory } from '../matcher/advisory.ts';
import { readRecord } from '../nvd/read-record.ts';
import { products } from '../products.ts';
import * as store from '../store.ts';
import { type NvdRecord, records } from './records/index.ts';

export type AssessWorld = Awaited<ReturnType<typeof startAssessWorld>>;

export interface Scanned {
  profile?: ScanProfile;
  endedAgo?: number;
  state?: 'complete' | 'partial';
}

/** Servers 1 and 2 of cluster 7, with these addresses. */
export const addressOf = (serverId: number) => `203.0.113.${9 + serverId}`;
export const openssh = (version: string, extra: Partial<ScanService> = {}): Partial<ScanService> => ({
  ...{
    port: 22,
    service: 'ssh',
    product: 'OpenSSH',
    version,
    cpe: [`cpe:/a:openbsd:openssh:${version}`],
    ...extra,
  },
});
export const nginx = (version: string, extra: Partial<ScanService> = {}): Partial<ScanService> => ({
  ...{
    port: 80,
    service: 'http',
    product: 'nginx',
    version,
    cpe: [`cpe:/a:igor_sysoev:nginx:${version}`],
    ...extra,
  },
});

/** Stores records, as a refresh does: of these products, or of all. */
export async function copyRecords(
  { db }: Pick<TestDatabase, 'db'>,
  of: readonly NvdRecord[] = records,
  productKeys: readonly string[] = products.map(({ key }) => key),
): Promise<void> {
  for (const key of productKeys) {
    const product = products.find((one) => one.key === key)!;
    const advisories = of.flatMap((record): Advisory[] => {
      const read = readRecord(record);
      const text = JSON.stringify(record.cve.configurations ?? []);
      const isOfProduct = product.names.some(([vendor, name]) => text.includes(`:${vendor}:${name}:`));
      return read && read !== 'rejected' && isOfProduct ? [read] : [];
    });
    await db
      .transaction()
      .execute((trx) => store.replaceAdvisories(trx, key, { advisories, unreadable: [] }));
  }
}

export async function startAssessWorld(servers = 2) {
  const stage = await startScanStage();
  const { monitor, pool, database, sensorId, siteId } = stage;
  await listServers(
    pool,
    Array.from({ length: servers }, (_, i) => ({ serverId: i + 1, addresses: [addressOf(i + 1)] })),
  );
  const sensor = { id: sensorId, siteId };
  return {
    ...stage,
    vulnerabilities: monitor.vulnerabilities,
    /** Stores records, as a refresh does: of these products, or of all. */
    copyRecords: (of?: readonly NvdRecord[], keys?: readonly string[]) => copyRecords(database, of, keys),
    /** Reports a complete scan that found these services; returns its id. */
    async scan(
      address: string,
      services: readonly Partial<ScanService>[],
      { profile = 'common', endedAgo = 60, state = 'complete' }: Scanned = {},
    ): Promise<string> {
      const plan = await monitor.scans.readPlan(sensor);
      const target = plan.targets.find((one) => one.address === address)!;
      const report = result(target.target_id, profile, [], { endedAgo, state });
      const at = secondsAgo(endedAgo);
      report.services = services.map((one) =>
        service(one.port!, { scan_id: report.scan_id, first_observed_at: at, observed_at: at, ...one }),
      );
      await monitor.scans.receive(sensor, report);
      return report.scan_id;
    },
    /** One run of the assessing loop. */
    async assess(): Promise<number> {
      const done = await monitor.vulnerabilities.assessor.runOnce();
      if (!done) throw new Error('another process assesses');
      return done.servers;
    },
    async rows<Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> {
      return (await pool.query(text, values)).rows;
    },
    [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose](),
  };
}
