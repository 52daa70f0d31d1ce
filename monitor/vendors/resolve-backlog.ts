import type { Clock } from '#common/clock/index.ts';
import { type Lease, renewLease, resignLease, takeLease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { findOffline, registryPrefix } from './find-offline.ts';
import type { RegistryClient } from './registry-client.ts';
import * as store from './store.ts';

/** Devices without a manufacturer. */
export interface Backlog {
  /** Devices after this id, by id. */
  list(afterId: number, limit: number): Promise<{ id: number; mac: string }[]>;
  write(names: readonly { id: number; manufacturer: string }[]): Promise<void>;
}

export interface ResolveOptions {
  /** Maximum number of lookups at a registry. */
  limit: number;
  /** Use only the bundled table and stored answers. */
  isOffline: boolean;
  /** Receives progress lines for people. */
  report(line: string): void;
  signal?: AbortSignal;
}

export interface ResolveResult {
  /** Devices named by the bundled table or an earlier lookup. */
  offline: number;
  /** Lookups, and the devices that they named. */
  lookups: number;
  named: number;
  unknown: number;
  failed: number;
  /** Devices that may still be looked up, now or after twelve hours. */
  remaining: number;
  /** Why the registry pass ended early or did not run. */
  ended: string | null;
}

interface ResolveDeps {
  db: () => Queryable;
  clock: Clock;
  /** Null keeps identification offline. */
  registry: RegistryClient | null;
  /** Pause between two lookups: public registries allow one per second. */
  pauseMs: number;
}

const pageSize = 5_000;
const leaseSeconds = 60;
const leaseName = 'resolve_mac_vendors';
/** Consecutive failed lookups that end a pass: the registry is down, and each lookup would wait for the timeout. */
const failuresMax = 3;

/**
 * Names devices: from the bundled table and stored answers for the whole backlog, then in a rate-limited pass at the
 * registry (NET-2.1.5). Null when another process is doing it.
 */
export async function resolveBacklog(
  deps: ResolveDeps,
  backlog: Backlog,
  options: ResolveOptions,
): Promise<ResolveResult | null> {
  const holder = `${process.pid}-${deps.clock.nowMs()}`;
  const lease = await takeLease({ ...deps, ttlSeconds: leaseSeconds }, leaseName, holder);
  if (!lease) return null;
  try {
    const open = new Map<string, number[]>();
    const result: ResolveResult = {
      offline: await nameOffline(deps.db(), backlog, open),
      lookups: 0,
      named: 0,
      unknown: 0,
      failed: 0,
      remaining: 0,
      ended: null,
    };
    options.report(`Offline pass: ${result.offline} named, ${open.size} prefixes not in the table.`);
    if (options.isOffline) result.ended = 'Offline pass only, as requested.';
    else if (!deps.registry) result.ended = 'No registry is configured: SVC_MAC_VENDOR_LOOKUP_URL is empty.';
    else await askRegistry(deps, deps.registry, lease, backlog, open, options, result);
    result.remaining = [...open.values()].reduce((sum, ids) => sum + ids.length, 0);
    return result;
  } finally {
    await resignLease(deps, lease);
  }
}

/** `open` receives the devices without a name, by prefix. */
async function nameOffline(db: Queryable, backlog: Backlog, open: Map<string, number[]>): Promise<number> {
  let named = 0;
  for (let afterId = 0; ; ) {
    const page = await backlog.list(afterId, pageSize);
    const prefixOf = new Map(page.map(({ id, mac }) => [id, registryPrefix(mac)]));
    const known = await store.listNames(db, [
      ...new Set([...prefixOf.values()].filter((one) => one !== null)),
    ]);
    const names: { id: number; manufacturer: string }[] = [];
    for (const { id, mac } of page) {
      const prefix = prefixOf.get(id);
      if (!prefix) continue;
      const manufacturer = (await findOffline(mac)) ?? known.get(prefix);
      if (manufacturer) names.push({ id, manufacturer });
      else open.set(prefix, [...(open.get(prefix) ?? []), id]);
    }
    if (names.length > 0) await backlog.write(names);
    named += names.length;
    if (page.length < pageSize) return named;
    afterId = page.at(-1)!.id;
  }
}

async function askRegistry(
  deps: ResolveDeps,
  registry: RegistryClient,
  lease: Lease,
  backlog: Backlog,
  open: Map<string, number[]>,
  options: ResolveOptions,
  result: ResolveResult,
): Promise<void> {
  const due = await store.listDuePrefixes(deps.db(), [...open.keys()]);
  const total = Math.min(due.length, options.limit);
  const waiting = open.size - due.length;
  if (waiting > 0) options.report(`${waiting} prefixes were tried within the last twelve hours and wait.`);
  let failures = 0;
  for (const [i, prefix] of due.slice(0, total).entries()) {
    if (i > 0) await deps.clock.wait(deps.pauseMs, options.signal);
    if (options.signal?.aborted) {
      result.ended = 'Interrupted.';
      return;
    }
    if (!(await renewLease({ ...deps, ttlSeconds: leaseSeconds }, lease))) {
      result.ended = 'Another process has taken over.';
      return;
    }
    await store.noteAttempt(deps.db(), prefix);
    result.lookups += 1;
    const answer = await registry.lookUp(prefix);
    const say = (text: string) =>
      options.report(`${i + 1} of ${total}  ${prefix.match(/../g)!.join('-')}  ${text}`);
    if (answer.outcome === 'found') {
      const ids = open.get(prefix)!;
      await store.writeName(deps.db(), prefix, answer.manufacturer);
      await backlog.write(ids.map((id) => ({ id, manufacturer: answer.manufacturer })));
      open.delete(prefix);
      result.named += ids.length;
      say(`${answer.manufacturer} (${ids.length === 1 ? '1 device' : `${ids.length} devices`})`);
    } else if (answer.outcome === 'unknown') {
      result.unknown += 1;
      say('not known there');
    } else {
      result.failed += 1;
      say(`the registry ${answer.reason}`);
    }
    failures = answer.outcome === 'failed' ? failures + (answer.shouldStop ? 1 : 0) : 0;
    if (failures >= failuresMax) {
      result.ended = `The registry failed ${failuresMax} times in a row; the rest is postponed.`;
      return;
    }
  }
}
