/**
 * What a customer sees of their own server: its traffic of a range; and what several servers of an actor did.
 *
 * The actor must have access to the server's tenant, and the rows are filtered by tenant and server in the query as well, so
 * the former owner of an address is never shown to its present one.
 */
import { CodedError } from '#common/errors/index.ts';
import { type Actor, forbidden } from '#operations/accounts/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { type AddressSubject, reachedAddress } from '../subject.ts';
import * as store from './store.ts';
import * as usage from './usage-store.ts';

export interface TrafficRange {
  fromMs: number;
  toMs: number;
  stepSeconds: number;
}

/** Longest range of exact minutes: 7 days of one address are 10,080 rows. An hour more, because ranges end on whole steps. */
const minutesRangeDaysMax = 7;

/** The newest minute of each of these servers that the actor reaches; a server without any is absent. */
export async function readLatest(
  db: Queryable,
  actor: Actor,
  serverIds: readonly number[],
): Promise<Map<number, store.LatestRow>> {
  if (actor.kind === 'project') return new Map();
  const rows = await store.listLatest(db, serverIds, actor.kind === 'customer' ? actor.tenantIds : 'all');
  return new Map(rows.map((row) => [row.serverId, row]));
}

/** The exact stored minutes of a range; throws `protect_traffic.range_too_long`. */
export async function readMinutes(
  db: Queryable,
  actor: Actor,
  subject: AddressSubject,
  range: { fromMs: number; toMs: number },
): Promise<store.MinuteRow[]> {
  if (!hasExactMinutes(range)) {
    throw new CodedError(
      'protect_traffic.range_too_long',
      `Exact minutes are given for at most ${minutesRangeDaysMax} days at a time. Choose a shorter range.`,
    );
  }
  return store.listMinutes(db, reachedAddress(actor, subject), range);
}

/** False for a range that is too long for `readMinutes`. */
export function hasExactMinutes(range: { fromMs: number; toMs: number }): boolean {
  return range.toMs - range.fromMs <= (minutesRangeDaysMax * 24 + 1) * 3_600_000;
}

/** Applications are shown for so long (NET-2.4.4). */
const applicationsShownMs = 86_400_000;

/** A customer reads servers of the own workspaces alone: the statements filter by them as well as by the ids. */
export interface UsageSubject {
  /** Null, for staff alone: all servers. */
  serverIds: readonly number[] | null;
  /** Only of these tenants, beside what the actor reaches; absent: of all of those. */
  tenantIds?: readonly number[];
  /** Only these addresses; null or absent: all. */
  addresses?: readonly string[] | null;
}

interface ApplicationUse {
  identities: usage.IdentityUse[];
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
  range: usage.UsageRange,
  of: usage.UsageGroup = 'server',
): Promise<Map<number, usage.UsageTotal>> {
  const totals = await usage.listUsageTotals(db, usageScopeOf(actor, subject), range, of);
  return new Map(totals.map((total) => [total.id!, total]));
}

/** Steps by the id of the server or the tenant. */
export async function readServerSteps(
  db: Queryable,
  actor: Actor,
  subject: UsageSubject,
  query: TrafficRange,
  of: usage.UsageGroup = 'server',
): Promise<Map<number, usage.UsageStep[]>> {
  const steps = await usage.listUsageSteps(db, usageScopeOf(actor, subject), query, of);
  return Map.groupBy(steps, (step) => step.id!);
}

/** Applications of the part of a range that they are shown for. */
export async function readApplicationUse(
  db: Queryable,
  actor: Actor,
  subject: UsageSubject,
  range: usage.UsageRange,
): Promise<ApplicationUse> {
  const shownFromMs = (await readNowMs(db)) - applicationsShownMs;
  const fromMs = Math.max(range.fromMs, shownFromMs);
  const toMs = Math.max(range.toMs, fromMs);
  const identities = await usage.listIdentities(db, usageScopeOf(actor, subject), { fromMs, toMs });
  return { identities, fromMs };
}

function usageScopeOf(
  actor: Actor,
  { serverIds, tenantIds: wanted, addresses }: UsageSubject,
): usage.UsageScope {
  if (actor.kind === 'project') throw forbidden('Admin projects read no traffic.');
  const reached = actor.kind === 'customer' ? actor.tenantIds : 'all';
  const tenantIds =
    reached === 'all' ? (wanted ?? 'all') : reached.filter((id) => wanted?.includes(id) ?? true);
  return { tenantIds, serverIds, addresses: addresses ?? null };
}
