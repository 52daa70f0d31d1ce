/**
 * Feeds to operations, each a leased loop with durable cursors. Here: the traffic of exact addresses by minute.
 *
 * Delivery is at least once and its effects happen once: operations answers `unchanged` to what it has. Only complete
 * minutes are sent, gaps are not sent at all, and what comes late is sent by the sweep that goes over the last 24 hours
 * again and again. Nothing that operations answers to a failed request is kept.
 */

import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Applications } from '#monitor/applications/index.ts';
import type { Connection } from '#monitor/operations-client/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import type { Traffic } from '#monitor/traffic/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { feedName, runPasses, runTick, type TickMemory, type TickResult } from './run-tick.ts';
import * as store from './store.ts';

export type { TickResult } from './run-tick.ts';
export type { FeedState, HeldBack } from './store.ts';

export interface Delivery {
  /** The loop `sync_ops_ddos`. */
  readonly loop: LeasedLoop;
  /** One tick of at most 50 allocations now, where the loop runs as many as are due; `held` when another process holds the lease, `idle` when no connection is enabled. */
  runOnce(): Promise<TickResult | 'held' | 'idle'>;
  /** The minute feed's state; null before its first run. */
  telemetryState(): Promise<store.FeedState | null>;
  /** Allocations that do not receive everything, for people. */
  listHeldBack(): Promise<store.HeldBack[]>;
  /**
   * Exact addresses of live allocations in the clusters of a site, as the last page-through listed them; with a sensor
   * those that it speaks for.
   */
  listAddresses(siteId: number, sensorId?: number | null): Promise<string[]>;
  /** Forgets cursors that nothing has visited since (NET-2.9). */
  forgetCursors(cutoffMs: number): Promise<number>;
}

export interface DeliveryDeps {
  db: () => Queryable;
  /** Connections that only read, for what plans ask (NET-5.3); the same as the others when absent. */
  reader?: () => Queryable;
  connection: Connection;
  sites: Pick<Sites, 'listClusters'>;
  traffic: Pick<Traffic, 'readAddressesMinutes' | 'listCaptures'>;
  applications: Pick<Applications, 'readAddressesApplications'>;
  clock: Clock;
  reporter: Reporter;
  intervalSeconds: number;
  /** Documentation ranges count as globally routable: lab and demo worlds alone. */
  documentationIsGlobal: boolean;
}

/** Allocations that a page shows. */
const heldBackShown = 20;

/** Longer than one request may take, so that a slow one does not cost the lease. */
const leaseSeconds = 30;

export function createDelivery(deps: DeliveryDeps): Delivery {
  const memory: TickMemory = { targetsFetchedAtMs: null };
  let lastResult: TickResult | null = null;
  let lastError: string | null = null;
  let isOneTick = false;
  const loop = createLeasedLoop({
    name: 'sync_ops_ddos',
    intervalMs: deps.intervalSeconds * 1000,
    ttlSeconds: leaseSeconds,
    db: deps.db,
    clock: deps.clock,
    reporter: deps.reporter,
    async run(lease, renew, signal) {
      if (isOneTick) lastResult = await runTick(deps, memory, lease, renew, signal);
      else lastResult = await runPasses(deps, memory, lease, renew, signal);
      const error = lastResult?.error ?? null;
      // The same fault every few seconds is one fact.
      if (error !== null && error !== lastError) deps.reporter.warn('minutes not delivered', { error });
      if (error === null && lastError !== null) deps.reporter.info('minutes are delivered again');
      lastError = error;
    },
  });
  return {
    loop,
    async runOnce() {
      lastResult = null;
      isOneTick = true;
      const isMine = await loop.runOnce().finally(() => {
        isOneTick = false;
      });
      return isMine ? (lastResult ?? 'idle') : 'held';
    },
    listHeldBack: () => store.listHeldBack((deps.reader ?? deps.db)(), heldBackShown),
    telemetryState: () => store.readFeedState(deps.db(), feedName),
    async listAddresses(siteId, sensorId = null) {
      const mappings = await deps.sites.listClusters();
      const clusters = mappings.filter((mapping) => mapping.siteId === siteId);
      return store.listAddresses(
        (deps.reader ?? deps.db)(),
        clusters.map((mapping) => mapping.clusterId),
        sensorId,
      );
    },
    forgetCursors: (cutoffMs) => store.deleteCursorsBefore(deps.db(), cutoffMs),
  };
}
