/**
 * Manufacturers of MACs: a bundled table first, a public registry by command (NET-2.1.5).
 *
 * Only 24 bits of a MAC are sent, and only to the configured registry. A locally administered MAC has no manufacturer
 * and is never looked up (NET-2.1.4). An answer is stored permanently, a failure for twelve hours.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { findOffline, registryPrefix } from './find-offline.ts';
import { createRegistryClient } from './registry-client.ts';
import { type Backlog, type ResolveOptions, resolveBacklog } from './resolve-backlog.ts';
import { listNames } from './store.ts';

export { isLocallyAdministered } from './find-offline.ts';
export type { Backlog, ResolveResult } from './resolve-backlog.ts';

export type Vendors = ReturnType<typeof createVendors>;

/** Public registries take about one request a second. */
const defaultPauseMs = 1_100;

export function createVendors(deps: {
  db: () => Queryable;
  clock: Clock;
  /** Null keeps identification offline. */
  registryUrl: string | null;
  pauseMs?: number;
}) {
  const { db, clock, registryUrl, pauseMs = defaultPauseMs } = deps;
  const registry = registryUrl === null ? null : createRegistryClient({ url: registryUrl });
  return {
    /** Host of the configured registry; null while identification is offline. */
    registryHost: registryUrl === null ? null : new URL(registryUrl).host,
    /** Manufacturers from the bundled table and from stored answers; unknown ones are left out. Sends nothing. */
    findKnown,
    /** Names a backlog of devices; null when another process is doing it. */
    resolve: (backlog: Backlog, options: ResolveOptions) =>
      resolveBacklog({ db, clock, registry, pauseMs }, backlog, options),
  };
}

async function findKnown(db: Queryable, macs: readonly string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const missed = new Map<string, string>();
  for (const mac of macs) {
    const name = await findOffline(mac);
    if (name) found.set(mac, name);
    else {
      const prefix = registryPrefix(mac);
      if (prefix) missed.set(mac, prefix);
    }
  }
  const names = await listNames(db, [...new Set(missed.values())]);
  for (const [mac, prefix] of missed) {
    const name = names.get(prefix);
    if (name) found.set(mac, name);
  }
  return found;
}
