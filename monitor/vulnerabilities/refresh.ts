/**
 * Keeps the copy of the vulnerability database: each product's records once in 24 hours (NET-2.6.3), by one process at a time.
 *
 * Requests are paced by the database's clock in a stored row, so pauses hold for all processes and over restarts. Who sends a
 * request takes the right for as long as it may be under way; its answer shortens that to the pause. A failure ends the
 * pass and doubles the pause before the next request.
 */
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { type Reporter, silentReporter } from '#common/reporter/index.ts';
import { type Backoff, backoffMs } from '#common/retry/index.ts';
import { createLeasedLoop, ifHeld, type Lease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { importFiles } from './import-files.ts';
import { type NvdClient, NvdFailure, type NvdPage } from './nvd/client.ts';
import { fetchProduct } from './nvd/fetch-product.ts';
import { type Product, products } from './products.ts';
import * as store from './store.ts';

interface RefreshDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  /** Null keeps the copy as it is. */
  client: NvdClient | null;
  /** Folders and URLs of files of distributions' security trackers. */
  trackers: readonly string[];
}

/** What one pass did. */
export interface RefreshResult {
  refreshed: string[];
  /** Products that were due and were not refreshed. */
  left: string[];
  /** Why the pass ended early. */
  error: string | null;
}

export type Refresher = ReturnType<typeof createRefresher>;

const leaseName = 'refresh_vulnerabilities';
const refreshSeconds = 86_400;
const trackerRetrySeconds = 3_600;
/** Between two looks whether a product is due. */
const intervalMs = 60_000;
const leaseSeconds = 300;
/** A pass renews its lease at least this often while it waits. */
const waitMsMax = 60_000;
/** A turn is used within this time. */
const turnTrustedMs = 5_000;
/** A pass does not wait longer than this for its turn. */
const turnMsMax = 150_000;
const backoff: Backoff = { firstMs: 30_000, maxMs: 3_600_000 };

/** The lease was lost, the program stops, or the turn is too far away. */
class PassEnded extends Error {}

export function createRefresher(deps: RefreshDeps) {
  const createLoop = (run: (held: Held) => Promise<unknown>) =>
    createLeasedLoop({
      ...{ name: leaseName, intervalMs, ttlSeconds: leaseSeconds },
      ...{ db: deps.db, clock: deps.clock, reporter: deps.reporter },
      async run(lease, renew, signal) {
        await run({ lease, renew, signal });
      },
    });
  return {
    loop: createLoop((held) => runPass(deps, held, () => {})),
    // What fails is in the report and the result, not in the log too.
    /** One pass now; `held` while another process makes one. */
    async runOnce(report: (line: string) => void, signal?: AbortSignal): Promise<RefreshResult | 'held'> {
      const quiet = { ...deps, reporter: silentReporter };
      let result: RefreshResult | 'held' = 'held';
      const once = createLoop(async (held) => {
        const ending = signal ? AbortSignal.any([held.signal, signal]) : held.signal;
        result = await runPass(quiet, { ...held, signal: ending }, report);
      });
      try {
        await once.runOnce();
        return result;
      } finally {
        await once.stop();
      }
    },
  };
}

interface Held {
  lease: Lease;
  renew: () => Promise<boolean>;
  signal: AbortSignal;
}

async function runPass(
  deps: RefreshDeps,
  held: Held,
  report: (line: string) => void,
): Promise<RefreshResult> {
  await readTrackers(deps, held, report);
  return refreshDue(deps, held, report);
}

/** Reads the trackers' files where they are due. One that can't be read leaves what was read before. */
async function readTrackers(
  { db, reporter, trackers }: RefreshDeps,
  held: Held,
  report: (line: string) => void,
): Promise<void> {
  if (trackers.length === 0 || !(await store.claimTrackers(db(), refreshSeconds))) return;
  for (const source of trackers) {
    if (held.signal.aborted || !(await held.renew())) return store.retryTrackers(db(), 0);
    try {
      await importFiles(db(), source, report, held.signal);
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      await store.retryTrackers(db(), trackerRetrySeconds);
      report(error.message);
      if (!held.signal.aborted)
        reporter.warn('security tracker can not be read', { source, error: error.message });
    }
  }
}

async function refreshDue(
  deps: RefreshDeps,
  held: Held,
  report: (line: string) => void,
): Promise<RefreshResult> {
  const { client } = deps;
  const result: RefreshResult = { refreshed: [], left: [], error: null };
  if (!client) return { ...result, error: 'No vulnerability database is configured: SVC_NVD_URL is empty.' };
  const due = await store.listDue(
    deps.db(),
    products.map(({ key }) => key),
    refreshSeconds,
  );
  for (const key of due) {
    const product = products.find((one) => one.key === key)!;
    try {
      if (!(await refreshProduct(deps, client, held, product)))
        throw new PassEnded('Another process has taken over.');
      result.refreshed.push(key);
      report(`${product.title}: refreshed.`);
    } catch (error) {
      result.left = due.slice(result.refreshed.length);
      if (error instanceof PassEnded) result.error = error.message;
      else if (error instanceof NvdFailure) result.error = error.message;
      else throw error;
      if (error instanceof NvdFailure)
        deps.reporter.warn('vulnerability database can not be read', { product: key, error: error.message });
      return result;
    }
  }
  return result;
}

/** False when the lease is lost; nothing was written then. Throws `NvdFailure`, `PassEnded`. */
async function refreshProduct(deps: RefreshDeps, client: NvdClient, held: Held, product: Product) {
  const write = (work: (trx: Queryable) => Promise<void>) =>
    ifHeld(deps.db(), held.lease, async (trx) => {
      await work(trx);
      return true;
    });
  try {
    const fetched = await fetchProduct(product, (...asked) => fetchInTurn(deps, client, held, asked));
    const before = (await store.listProducts(deps.db())).find((one) => one.product === product.key);
    if (fetched.advisories.length === 0 && (before?.records ?? 0) > 0) throw new NvdFailure('empty');
    return (await write((trx) => store.replaceAdvisories(trx, product.key, fetched))) ?? false;
  } catch (error) {
    if (error instanceof NvdFailure) await write((trx) => store.noteAttempt(trx, product.key, error.message));
    throw error;
  }
}

/** Waits for the turn, sends one request, and stores when the next may follow. */
async function fetchInTurn(
  deps: RefreshDeps,
  client: NvdClient,
  held: Held,
  asked: Parameters<NvdClient['fetchPage']>,
): Promise<NvdPage> {
  const claim = await waitForTurn(deps, client, held);
  try {
    const page = await client.fetchPage(...asked);
    await store.noteAnswer(deps.db(), claim, client.pauseSeconds);
    return page;
  } catch (error) {
    const failures = (await store.countFailures(deps.db())) + 1;
    const asks = error instanceof NvdFailure ? error.retryAfterSeconds : 0;
    const pause = Math.max(backoffMs(backoff, failures) / 1_000, asks, client.pauseSeconds);
    await store.noteFailure(deps.db(), claim, pause);
    throw error;
  }
}

async function waitForTurn({ db, clock }: RefreshDeps, client: NvdClient, held: Held): Promise<number> {
  for (;;) {
    if (held.signal.aborted) throw new PassEnded('Interrupted.');
    if (!(await held.renew())) throw new PassEnded('Another process has taken over.');
    const askedAtMs = clock.monotonicMs();
    const turn = await store.claimRequest(db(), client.timeoutSeconds + client.pauseSeconds);
    // A process that was frozen here has lost its turn: what it sends now could come too soon behind another's request.
    if ('claim' in turn && clock.monotonicMs() - askedAtMs < turnTrustedMs) return turn.claim;
    const waitMs = 'waitMs' in turn ? turn.waitMs : client.pauseSeconds * 1_000;
    if (waitMs > turnMsMax)
      throw new PassEnded(`The next request is allowed in ${Math.ceil(waitMs / 60_000)} minutes.`);
    await clock.wait(Math.min(waitMs, waitMsMax), held.signal);
  }
}
