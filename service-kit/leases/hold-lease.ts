/**
 * Holding a lease in a process: what it may believe about its own term, and for how long.
 *
 * The database decides by its clock. A process trusts a term only until the moment at which it asked plus the lease's
 * time minus a margin, by its monotonic clock, so an answer that comes late never makes it trust longer.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

/** A held lease. */
export interface Lease {
  name: string;
  holder: string;
  term: number;
  /** Until here, by the monotonic clock, its holder may take it for held without asking. */
  trustedUntilMs: number;
}

interface HoldingDeps {
  db: () => Queryable;
  clock: Clock;
  /** How long a lease outlives its holder. */
  ttlSeconds: number;
}

/** Part of the time that is not trusted: clocks drift, and what was begun wants to end. */
const marginShare = 0.1;

/** Takes a lease, or takes up the own one again; null while another process holds it or when the answer came too late. */
export async function takeLease(deps: HoldingDeps, name: string, holder: string): Promise<Lease | null> {
  const askedAtMs = deps.clock.monotonicMs();
  const term = await store.takeLease(deps.db(), name, holder, deps.ttlSeconds);
  if (term === null) return null;
  const lease = { name, holder, term, trustedUntilMs: trustFrom(deps, askedAtMs) };
  return isTrusted(deps, lease) ? lease : null;
}

/** Renews this very term; false when it is lost or the answer came too late to believe it. */
export async function renewLease(deps: HoldingDeps, lease: Lease): Promise<boolean> {
  const askedAtMs = deps.clock.monotonicMs();
  if (!(await store.renewTerm(deps.db(), lease, deps.ttlSeconds))) return false;
  lease.trustedUntilMs = trustFrom(deps, askedAtMs);
  return isTrusted(deps, lease);
}

/** True while the holder need not ask. */
export function isTrusted(deps: Pick<HoldingDeps, 'clock'>, lease: Lease): boolean {
  return deps.clock.monotonicMs() < lease.trustedUntilMs;
}

/** Gives the term back; a term that follows it is left alone. */
export function resignLease(deps: Pick<HoldingDeps, 'db'>, lease: Lease): Promise<void> {
  return store.releaseTerm(deps.db(), lease);
}

function trustFrom(deps: HoldingDeps, askedAtMs: number): number {
  return askedAtMs + deps.ttlSeconds * 1000 * (1 - marginShare);
}

/** Thrown where another process may have taken over; nothing was written. */
export class LeaseLost extends Error {}

/** A transaction that commits only under the lease's term; throws `LeaseLost`. `prepare` comes before the term is asked for. */
export async function underLease<T>(
  db: Queryable,
  lease: Pick<Lease, 'name' | 'term'>,
  work: (trx: Queryable) => Promise<T>,
  prepare?: (trx: Queryable) => Promise<void>,
): Promise<T> {
  return db.transaction().execute(async (trx) => {
    await prepare?.(trx);
    if (!(await store.holdsTerm(trx, lease.name, lease.term))) throw new LeaseLost();
    return work(trx);
  });
}

/** The same for work that another process will do anyway: null where the lease is lost. */
export async function ifHeld<T>(...given: Parameters<typeof underLease<T>>): Promise<T | null> {
  try {
    return await underLease(...given);
  } catch (error) {
    if (error instanceof LeaseLost) return null;
    throw error;
  }
}
