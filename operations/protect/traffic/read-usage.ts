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

export interface Usage {
  /** Of each server, where it was observed in the range or before. */
  totals: store.UsageTotal[];
  /** Of all of them together; null when nothing was observed. */
  total: store.UsageTotal | null;
  /** Of all servers together, in time order. */
  steps: store.UsageStep[];
  nowMs: number;
}

export interface ApplicationUse {
  identities: store.IdentityUse[];
  /** Where the applications begin: later than the range where that is longer than they are shown. */
  fromMs: number;
  /** Whether the same length of time before is shown as well. */
  isPreviousShown: boolean;
}

export async function readUsage(
  db: Queryable,
  actor: Actor,
  subject: UsageSubject,
  query: UsageQuery,
): Promise<Usage> {
  const scope = scopeOf(actor, subject);
  const [totals, all, steps, nowMs] = await Promise.all([
    store.listUsageTotals(db, scope, query, 'server', { withPrevious: true }),
    store.listUsageTotals(db, scope, query, 'all', { withPrevious: true }),
    store.listUsageSteps(db, scope, query, 'all'),
    readNowMs(db),
  ]);
  return { totals, total: all[0] ?? null, steps, nowMs };
}

/** Totals by the id of the server or the tenant. */
export async function readTotals(
  db: Queryable,
  actor: Actor,
  subject: UsageSubject,
  range: store.UsageRange,
  of: 'server' | 'tenant' = 'server',
): Promise<Map<number, store.UsageTotal>> {
  const totals = await store.listUsageTotals(db, scopeOf(actor, subject), range, of, { withPrevious: false });
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
  return { identities, fromMs, isPreviousShown: 2 * fromMs - toMs >= shownFromMs };
}

export async function readApplicationSteps(
  db: Queryable,
  actor: Actor,
  subject: UsageSubject,
  query: UsageQuery,
): Promise<store.IdentityStep[]> {
  return store.listIdentitySteps(db, scopeOf(actor, subject), query);
}

function scopeOf(actor: Actor, { serverIds, tenantIds: wanted, addresses }: UsageSubject): store.UsageScope {
  if (actor.kind === 'project') throw forbidden('Admin projects read no traffic.');
  const reached = actor.kind === 'customer' ? actor.tenantIds : 'all';
  const tenantIds =
    reached === 'all' ? (wanted ?? 'all') : reached.filter((id) => wanted?.includes(id) ?? true);
  return { tenantIds, serverIds, addresses: addresses ?? null };
}
