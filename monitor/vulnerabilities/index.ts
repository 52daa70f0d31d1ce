/**
 * Potential vulnerabilities: what a public database says of the versions that scans found (NET-2.6).
 *
 * Guarantees: a finding is never more than potential. A service is assessed only where its product and its complete version are
 * known, and never as the original where a distribution made a package of it. Configurations are evaluated whole, in three
 * values: what scans can't see makes a result incomplete and never certain. Only names of products are sent to the
 * database; reads use the stored copy alone, and a failed refresh keeps the copy of before with its age (NET-2.6.3).
 *
 * Every open port of the scan evidence has one assessment, bound to exactly that evidence. What the records say of a product in one
 * version is stored once (`assessing/`), so a refresh compares each version once, however many servers run it.
 */
import { bind } from '#common/bind/index.ts';
import type { Clock } from '#common/clock/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type Assessment, assessServices, type ProductKnowledge } from './assess-service.ts';
import { type AssessorDeps, createAssessor } from './assessing/assessor.ts';
import { describeAge } from './copy-age.ts';
import { identifyService, type ServiceEvidence } from './identify-service.ts';
import { createIgnores } from './ignores/index.ts';
import { importFiles } from './import-files.ts';
import { createNvdClient, type NvdSource } from './nvd/client.ts';
import { listTrackers, readFixes } from './packages/fix-store.ts';
import { products } from './products.ts';
import * as projections from './projection-store.ts';
import { readProjections } from './read-projections.ts';
import { readServer } from './read-server.ts';
import * as reads from './read-store.ts';
import { listPortFindings } from './read-store.ts';
import { createRefresher } from './refresh.ts';
import * as store from './store.ts';

export type { ApartFinding, Assessment, Finding } from './assess-service.ts';
export type { FoundOfServer } from './assessing/assessor.ts';
export { listActive as listActiveFindings } from './assessing/noted-store.ts';
export { noteEvidence } from './assessing/server-store.ts';
export { type CopyAge, oldCopySeconds, overdueSeconds } from './copy-age.ts';
export type { ServiceEvidence } from './identify-service.ts';
export { ignoreReasonMax } from './ignores/index.ts';
export type { Ignore, IgnoredFinding } from './ignores/store.ts';
export type { StoredTracker } from './packages/fix-store.ts';
export type { DeliverablePlace } from './projection-store.ts';
export { readCpeEvidence, readNmapEvidence, type ServiceAt } from './read-evidence.ts';
export type { PlaceProjection } from './read-projections.ts';
export type { ServerWithServices, ServiceWithFindings } from './read-server.ts';
export type {
  AssessedServer,
  AssessedService,
  AssessmentTotals,
  FindingCounts,
  PortFindings,
  TouchedService,
  TouchingCve,
} from './read-store.ts';

/** The state of one product in the copy. */
export interface CopiedProduct extends store.StoredProduct {
  title: string;
}

/** Where records come from, for people. */
export type VulnerabilitySource = NonNullable<Vulnerabilities['source']>;

/** A part of a list. */
export interface ListPage {
  offset: number;
  limit: number;
}

/** What the feed exchanges with operations. */
export type AssessmentExchange = Pick<Vulnerabilities, 'listDeliverable' | 'readProjections' | 'noteAnswers'>;

export type Vulnerabilities = ReturnType<typeof createVulnerabilities>;

export function createVulnerabilities(
  deps: AssessorDeps & {
    db: () => Queryable;
    clock: Clock;
    reporter: Reporter;
    /** Null: nothing is fetched. */
    source: NvdSource | null;
    isDemo: boolean;
    /** Folders and URLs of files of distributions' security trackers. */
    trackers: readonly string[];
  },
) {
  const { db, source } = deps;
  const client = source && createNvdClient(source);
  const refresher = createRefresher({ ...deps, client });
  const assessor = createAssessor(deps);
  return {
    /** Null where no database is configured: the loop has nothing to do. */
    source: source && {
      host: new URL(source.url).host,
      hasKey: source.apiKey !== null,
      /** A demo's selection of records. */
      isDemo: deps.isDemo,
    },
    ...createIgnores(db),
    /** Assesses what scans found; its loop runs as long as the program. */
    assessor,
    /** The loops that refresh the copy, where it has a source, and assess. */
    parts: [
      ...(source === null && deps.trackers.length === 0 ? [] : [refresher.loop]),
      assessor.loop,
    ] satisfies readonly Part[],
    ...bind(db, {
      ...{ listDeliverable: projections.listDeliverable, importFiles, listProducts, listTrackers, assess },
      ...{ readServer, listPortFindings, readTotals: reads.readTotals, listServers: reads.listServers },
      ...{ findServer: reads.findServer, listCves: reads.listCves, findFinding: reads.findFinding },
      ...{ listTouched: reads.listTouched, readAge: store.readAge },
    }),
    /** A problem of the copy for people; null where it is younger than three days. */
    findProblem: async () => describeAge(await store.readAge(db()), source !== null),
    readProjections,
    noteAnswers: projections.noteAnswers,
    /** Refreshes the copy as long as the program runs. */
    loop: refresher.loop,
    /** One pass over the products that are due; `held` while another process makes one. */
    refresh: refresher.runOnce,
  };
}

/** Every known product, with the age of its records. */
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

/** What the copy says of services of one server, in their order. */
async function assess(db: Queryable, services: readonly ServiceEvidence[]): Promise<Assessment[]> {
  const keys = new Set(services.flatMap((service) => identifyService(service).product?.key ?? []));
  const known = new Map<string, ProductKnowledge>();
  for (const key of keys)
    known.set(key, { advisories: await store.readAdvisories(db, key), fixes: await readFixes(db, key) });
  return assessServices(services, (key) => known.get(key)!);
}
