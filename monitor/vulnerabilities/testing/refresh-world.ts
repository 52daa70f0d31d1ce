/**
 * Refreshers on a database whose clock moves only when one of them waits, and the vulnerability database as a process that stamps
 * requests by that clock.
 */
import type { Clock } from '#common/clock/index.ts';
import { type Reporter, silentReporter } from '#common/reporter/index.ts';
import { type StillClock, stopDatabaseClock } from '#monitor/testing/still-clock.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { createNvdClient, type NvdClient } from '../nvd/client.ts';
import { createRefresher, type Refresher } from '../refresh.ts';
import { startNvd } from './start-nvd.ts';

export type RefreshWorld = Awaited<ReturnType<typeof createRefreshWorld>>;

export interface RefresherOptions {
  apiKey?: string | null;
  /** Of one request; real time. */
  timeoutMs?: number;
  reporter?: Reporter;
  trackers?: readonly string[];
  /** Around each request. */
  around?: (fetch: () => ReturnType<NvdClient['fetchPage']>) => ReturnType<NvdClient['fetchPage']>;
}

const startMs = Date.parse('2026-11-02T10:00:00Z');

export async function createRefreshWorld() {
  const [database, nvd] = await Promise.all([createTestDatabase('monitor'), startNvd()]);
  const still: StillClock = await stopDatabaseClock(database, startMs);
  await nvd.setClock(startMs);
  /** Moves the time of database and processes. */
  const pass = async (ms: number) => {
    // The database keeps microseconds; what is waited for must have come.
    await still.set(still.nowMs() + ms);
    await nvd.setClock(still.nowMs());
  };
  const clock: Clock = {
    nowMs: () => still.nowMs(),
    monotonicMs: () => still.nowMs(),
    async wait(ms, signal) {
      if (!signal?.aborted) await pass(ms);
    },
  };
  return {
    database,
    nvd,
    clock,
    pass,
    /** A process of its own, as far as the program can tell. */
    createRefresher({
      apiKey = null,
      timeoutMs = 60_000,
      reporter = silentReporter,
      trackers = [],
      around,
    }: RefresherOptions = {}): Refresher {
      const client = createNvdClient({ url: nvd.url, apiKey }, timeoutMs);
      return createRefresher({
        ...{ db: () => database.db, clock, reporter, trackers },
        client: around
          ? { ...client, fetchPage: (...asked) => around(() => client.fetchPage(...asked)) }
          : client,
      });
    },
    async [Symbol.asyncDispose]() {
      await nvd[Symbol.asyncDispose]();
      await database.drop();
    },
  };
}
