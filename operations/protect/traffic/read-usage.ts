/**
 * What several servers of an actor did in a range, beside the same length of time before.
 *
 * A customer reads servers of the own workspaces alone: the statements filter by them as well as by the ids.
 */
import { type Actor, forbidden } from '#operations/accounts/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import * as store from './usage-store.ts';

/** Applications are shown for so long (NET-2.4.4). */
const applicationsShownMs = 86_400_000;

export interface UsageSubject {
  /** Null, for staff alone: all servers. */
  serverIds: readonly number[] | null;
  /** Only of these tenants, beside what the actor reaches; absent: of all of those. */
  tenantIds?: readonly number[];
  /** Only these addresses; null or absent: all. */
  addresses?: readonly string[] | null;
}

export interface UsageQuery {
  fromMs: number;
  toMs: number;
  stepSeconds: number;
}

export interface ApplicationUse {
  identities: store.IdentityUse[];
  /** Where the applications begin: later than the range where that is longer than they are shown. */
  fromMs: number;
}

export const bytesOf = (of: { inboundBytes: number; outboundBytes: number }): number =>
  of.inboundBytes + of.outboundBytes;

/** Totals by the id of the server or the tenant. */
export async function readTotals(
  db: Queryable,
  actor: Actor,
  subject: UsageSubject,
  range: store.UsageRange,
  of: 'server' | 'tenant' = 'server',
): Promise<Map<number, store.UsageTotal>> {
  const totals = await store.listUsageTotals(db, scopeOf(actor, subject), range, of);
  return new Map(totals.map((total) => [total.id!, total]));
}

/** Steps by the id of the server or the tenant. */
export async function readServerSteps(
  db: Queryable,
  actor: Actor,
  subject: UsageSubject,
  query: UsageQuery,
  of: 'server' | 'tenant' = 'server',
): Promise<Map<number, store.UsageStep[]>> {
  const steps = await store.listUsageSteps(db, scopeOf(actor, subject), query, of);
  return Map.groupBy(steps, (step) => step.id!);
}

/** Applications of the part of a range that they are shown for. */
export async function readApplicationUse(
  db: Queryable,
  actor: Actor,
  subject: UsageSubject,
  range: store.UsageRange,
): Promise<ApplicationUse> {
  const shownFromMs = (await readNowMs(db)) - applicationsShownMs;
  const fromMs = Math.max(range.fromMs, shownFromMs);
  const toMs = Math.max(range.toMs, fromMs);
  const identities = await store.listIdentities(db, scopeOf(actor, subject), { fromMs, toMs });
  return { identities, fromMs };
}

function scopeOf(actor: Actor, { serverIds, tenantIds: wanted, addresses }: UsageSubject): store.UsageScope {
  if (actor.kind === 'project') throw forbidden('Admin projects read no traffic.');
  const reached = actor.kind === 'customer' ? actor.tenantIds : 'all';
  const tenantIds =
    reached === 'all' ? (wanted ?? 'all') : reached.filter((id) => wanted?.includes(id) ?? true);
  return { tenantIds, serverIds, addresses: addresses ?? null };
}
