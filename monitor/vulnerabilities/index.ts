/**
 * Potential vulnerabilities: what a public database says of the versions that scans found (NET-2.6).
 *
 * Guarantees: a finding is never more than potential. A service is assessed only where its product and its complete version are
 * known, and never as the original where a distribution made a package of it. Configurations are evaluated whole, in three
 * values: what scans can't see makes a result incomplete and never certain. Only names of products are sent to the
 * database; reads use the stored copy alone, and a failed refresh keeps the copy of before with its age (NET-2.6.3).
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type Assessment, assessServices } from './assess-service.ts';
import { identifyService, type ServiceEvidence } from './identify-service.ts';
import { type ImportResult, importFiles } from './import-files.ts';
import type { Advisory } from './matcher/advisory.ts';
import { createNvdClient, type NvdSource } from './nvd/client.ts';
import { products } from './products.ts';
import { createRefresher, type RefreshResult } from './refresh.ts';
import * as store from './store.ts';

export type { Assessment, Finding } from './assess-service.ts';
export type { ServiceEvidence } from './identify-service.ts';
export { readCpeEvidence, readNmapEvidence, type ServiceAt } from './read-evidence.ts';

/** The state of one product in the copy. */
export interface CopiedProduct extends store.StoredProduct {
  title: string;
}

/** Where records come from, for people. */
export interface VulnerabilitySource {
  host: string;
  hasKey: boolean;
  /** A demo's selection of records. */
  isDemo: boolean;
}

export interface Vulnerabilities {
  /** Null where no database is configured: the loop has nothing to do. */
  source: VulnerabilitySource | null;
  /** Refreshes the copy as long as the program runs. */
  loop: LeasedLoop;
  /** One pass over the products that are due; `held` while another process makes one. */
  refresh(report: (line: string) => void, signal?: AbortSignal): Promise<RefreshResult | 'held'>;
  /** Adds records of feed files in a folder. Throws `vulnerabilities.feed`. */
  importFiles(folder: string, report: (line: string) => void): Promise<ImportResult>;
  /** Every known product, with the age of its records. */
  listProducts(): Promise<CopiedProduct[]>;
  /** What the copy says of services of one server, in their order. */
  assess(services: readonly ServiceEvidence[]): Promise<Assessment[]>;
}

export interface VulnerabilitiesDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  /** Null: nothing is fetched. */
  source: NvdSource | null;
  isDemo: boolean;
}

export function createVulnerabilities(deps: VulnerabilitiesDeps): Vulnerabilities {
  const { db, source } = deps;
  const client = source && createNvdClient(source);
  const refresher = createRefresher({ ...deps, client });
  return {
    source: source && {
      host: new URL(source.url).host,
      hasKey: source.apiKey !== null,
      isDemo: deps.isDemo,
    },
    loop: refresher.loop,
    refresh: refresher.runOnce,
    importFiles: (folder, report) => importFiles(db(), folder, report),
    listProducts: () => listProducts(db()),
    assess: (services) => assess(db(), services),
  };
}

async function listProducts(db: Queryable): Promise<CopiedProduct[]> {
  const stored = await store.listProducts(db);
  return products.map(({ key, title }) => ({
    ...(stored.find(({ product }) => product === key) ?? {
      ...{ product: key, attemptedAtMs: null, error: null, refreshedAtMs: null },
      ...{ records: 0, unreadable: 0, deferred: 0 },
    }),
    title,
  }));
}

async function assess(db: Queryable, services: readonly ServiceEvidence[]): Promise<Assessment[]> {
  const keys = new Set(services.flatMap((service) => identifyService(service).product?.key ?? []));
  const known = new Map<string, Advisory[] | null>();
  for (const key of keys) known.set(key, await store.readAdvisories(db, key));
  return assessServices(services, (key) => known.get(key) ?? null);
}
