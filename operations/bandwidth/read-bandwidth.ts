/** Use by server and period, and the account's pool of the running month. */

import { CodedError } from '#common/errors/index.ts';
import { type Actor, forbidden, reachesTenant } from '#operations/accounts/index.ts';
import { listServersSince, listUse, type UseRow } from '#operations/views/bandwidth-store.ts';
import type { Scope } from '#operations/views/scope.ts';
import { findOwnedServer } from '#operations/views/server-store.ts';
import { readNowMs } from '#service-kit/postgres/index.ts';
import type { BandwidthDeps } from './index.ts';
import { arrivalDays, chargeableBytes, computePool, overageQuanta, type Pool } from './pool.ts';
import { findChoice, findLimitedAt, findTerms, type WhenUsedUp } from './store.ts';

/** A server's use of a period. Without a sample everything is 0 and `lastSampledAt` null. */
export interface BandwidthRow {
  serverId: number;
  serverName: string;
  period: Period;
  inboundBytes: number;
  outboundBytes: number;
  /** The part of it that the provider's own port scans caused: it does not count against the pool. */
  ownScanInboundBytes: number;
  ownScanOutboundBytes: number;
  /** The part that attacks on it and from it were: it does not count either. */
  attackInboundBytes: number;
  attackOutboundBytes: number;
  /** What of it counts against the pool, by the rule of the settings. */
  poolBytes: number;
  /** Its part of what all servers of the account used of the pool in this period. */
  poolShare: number;
  lastSampledAt: Date | null;
  isDeleted: boolean;
}

export interface BandwidthHistory {
  granularity: Granularity;
  /** The current month, also when another period was requested. */
  current: BandwidthRow;
  /** Newest first; from the server's first period on. */
  rows: BandwidthRow[];
}

export interface AccountBandwidth {
  month: Period;
  pool: Pool;
  overage: Overage;
  /** Of the running month: living servers, and destroyed ones that existed in it. */
  servers: BandwidthRow[];
}

/** What the account's traffic beyond its pool costs in the running month, as it stands now. The pool grows until the month ends. */
export interface Overage {
  /** The price of 10^12 bytes in this month; 0: nothing is charged. */
  tbQuanta: number;
  /** Beyond the pool so far. */
  bytes: number;
  quanta: number;
  /** At the month's end if it goes on as it began; null before the first hour is over. */
  projectedQuanta: number | null;
  chargedAtMs: number;
  whenUsedUp: WhenUsedUp;
  /** The speed of a limited server in Mbit/s; 0: the limit can't be chosen. */
  limitMbit: number;
  /** Null while its servers are not limited. */
  limitedAt: Date | null;
}

export interface HistoryQuery {
  granularity: Granularity;
  /** Month or day; absent: twelve months back, or the beginning of this month. */
  from?: string | undefined;
  /** Month or day; absent: now. */
  to?: string | undefined;
}

const periodsMax = 400;
const monthsDefault = 12;

/** A server's history; null for another's and for one that is not there. Throws `bandwidth.invalid` (details.fields). */
export async function readHistory(
  deps: BandwidthDeps,
  actor: Actor,
  tenantId: number | null,
  serverId: number,
  query: HistoryQuery,
): Promise<BandwidthHistory | null> {
  const server = await findOwnedServer(deps.db(), scopeOf(actor, tenantId), serverId);
  if (server === null || !reachesTenant(actor, server.tenantId)) return null;
  const nowMs = await readNowMs(deps.db());
  const range = rangeOf(query, nowMs);
  const firstMs = Math.max(range.startMs, server.createdAt.getTime());
  const periods = firstMs < range.endMs ? periodsBetween(firstMs, range.endMs, query.granularity) : [];
  const month = periodAt(nowMs, 'month');
  const [rows, current] = await Promise.all([
    rowsOf(deps, server.tenantId, { serverId, name: server.name }, periods, query.granularity),
    rowsOf(deps, server.tenantId, { serverId, name: server.name }, [month], 'month'),
  ]);
  return { granularity: query.granularity, current: current[0]!, rows };
}

function scopeOf(actor: Actor, tenantId: number | null): Scope {
  if (tenantId !== null) return [tenantId];
  return actor.kind === 'customer' ? actor.tenantIds : 'all';
}

function rangeOf(query: HistoryQuery, nowMs: number): { startMs: number; endMs: number } {
  for (const path of ['from', 'to'] as const) {
    const given = query[path];
    if (given !== undefined && !isPeriodName(given))
      throw invalidField(path, 'must be a month such as 2025-11 or a day such as 2025-11-03');
  }
  const now = periodAt(nowMs, 'day').endMs;
  const endMs = Math.min(now, query.to === undefined ? now : periodOf(query.to).endMs);
  const startMs =
    query.from === undefined ? defaultStart(query.granularity, endMs) : periodOf(query.from).startMs;
  if (startMs >= endMs)
    throw invalidField('from', query.to === undefined ? 'must not lie ahead' : 'must not be after `to`');
  const days = (endMs - startMs) / 86_400_000;
  if (days > (query.granularity === 'day' ? periodsMax : periodsMax * 28))
    throw invalidField('from', `leaves more than ${periodsMax} periods; choose a shorter range`);
  return { startMs, endMs };
}

function defaultStart(granularity: Granularity, endMs: number): number {
  const month = new Date(periodAt(endMs - 1, 'month').startMs);
  return granularity === 'day'
    ? month.getTime()
    : Date.UTC(month.getUTCFullYear(), month.getUTCMonth() - (monthsDefault - 1), 1);
}

async function rowsOf(
  deps: BandwidthDeps,
  tenantId: number,
  server: { serverId: number; name: string },
  periods: readonly Period[],
  granularity: Granularity,
): Promise<BandwidthRow[]> {
  if (periods.length === 0) return [];
  const range = daysOf(periods);
  // Of the whole account, because a share is a part of what all its servers used.
  const use = await listUse(deps.db(), { tenantId, serverId: null }, range, {
    granularity,
    ...sourceOf(deps),
  });
  return periods.map((period) => {
    const ofPeriod = use.filter((row) => row.period === period.name);
    const mine = ofPeriod.find((row) => row.serverId === server.serverId);
    return toRow(deps, period, { ...server, isDeleted: false }, mine, poolSum(deps, ofPeriod));
  });
}

/** The pool of an account and its servers' part in it, this month. Throws `accounts.forbidden`. */
export async function readAccount(
  deps: BandwidthDeps,
  actor: Actor,
  account: { tenantId: number; openedAt: Date },
): Promise<AccountBandwidth> {
  if (!reachesTenant(actor, account.tenantId)) throw forbidden('This account is not yours.');
  const nowMs = await readNowMs(deps.db());
  const month = periodAt(nowMs, 'month');
  const [servers, use] = await Promise.all([
    listServersSince(deps.db(), account.tenantId, month.startMs),
    listUse(deps.db(), { tenantId: account.tenantId, serverId: null }, daysOf([month]), {
      granularity: 'month',
      ...sourceOf(deps),
    }),
  ]);
  const usedBytes = poolSum(deps, use);
  const pool = computePool({
    rules: deps.rules,
    month,
    nowMs,
    openedAt: account.openedAt,
    lives: servers.flatMap((server) => server.life ?? []),
    usedBytes,
  });
  const rows = servers.map((server) =>
    toRow(
      deps,
      month,
      server,
      use.find((row) => row.serverId === server.serverId),
      usedBytes,
    ),
  );
  return { month, pool, overage: await readOverage(deps, account.tenantId, month, pool), servers: rows };
}

async function readOverage(
  deps: BandwidthDeps,
  tenantId: number,
  month: Period,
  pool: Pool,
): Promise<Overage> {
  const tbQuanta = deps.tbQuanta === 0 ? 0 : ((await findTerms(deps.db()))?.tbQuanta ?? 0);
  const bytes = Math.max(0, pool.usedBytes - pool.allowanceBytes);
  const [choice, limitedAt, limitMbit] = await Promise.all([
    findChoice(deps.db(), tenantId, month.name),
    findLimitedAt(deps.db(), tenantId),
    findOfferedLimit(deps),
  ]);
  const projected = pool.projection && Math.max(0, pool.projection.bytes - pool.potentialBytes);
  return {
    tbQuanta,
    bytes,
    quanta: overageQuanta(chargeableBytes(bytes, choice), tbQuanta),
    projectedQuanta: projected === null ? null : overageQuanta(chargeableBytes(projected, choice), tbQuanta),
    ...{ whenUsedUp: choice.whenUsedUp, limitMbit, limitedAt },
    chargedAtMs: month.endMs + arrivalDays * 86_400_000,
  };
}

/** The speed of servers of a limited account in Mbit/s; 0 where the limit can't be chosen, also because a hypervisor can't keep it. */
export async function findOfferedLimit({ limitMbit, clusters }: BandwidthDeps): Promise<number> {
  if (limitMbit === 0) return 0;
  const drivers = (await clusters.listClusters()).map(({ driver }) => driver);
  return clusters.listCapabilities(drivers).includes('speed_limit') ? limitMbit : 0;
}

function toRow(
  deps: BandwidthDeps,
  period: Period,
  server: { serverId: number; name: string; isDeleted: boolean },
  use: UseRow | undefined,
  allBytes: number,
): BandwidthRow {
  const poolBytes = use === undefined ? 0 : countedBytes(deps, use);
  return {
    serverId: server.serverId,
    serverName: server.name,
    period,
    inboundBytes: use?.inboundBytes ?? 0,
    outboundBytes: use?.outboundBytes ?? 0,
    ownScanInboundBytes: use?.ownScanInboundBytes ?? 0,
    ownScanOutboundBytes: use?.ownScanOutboundBytes ?? 0,
    attackInboundBytes: use?.attackInboundBytes ?? 0,
    attackOutboundBytes: use?.attackOutboundBytes ?? 0,
    poolBytes,
    poolShare: allBytes === 0 ? 0 : poolBytes / allBytes,
    lastSampledAt: use?.lastSampledAt ?? null,
    isDeleted: server.isDeleted,
  };
}

/** Where traffic costs something, nothing is shown that is not charged by. */
const sourceOf = ({ source, tbQuanta }: BandwidthDeps) => ({ source, isAlone: tbQuanta > 0 });

function countedBytes({ poolCounts }: Pick<BandwidthDeps, 'poolCounts'>, use: UseRow): number {
  const inbound = Math.max(0, use.inboundBytes - use.ownScanInboundBytes - use.attackInboundBytes);
  const outbound = Math.max(0, use.outboundBytes - use.ownScanOutboundBytes - use.attackOutboundBytes);
  return poolCounts === 'outbound' ? outbound : inbound + outbound;
}

export function poolSum(deps: Pick<BandwidthDeps, 'poolCounts'>, rows: readonly UseRow[]): number {
  return rows.reduce((sum, row) => sum + countedBytes(deps, row), 0);
}

/** First and last day of periods that stand newest first. */
export function daysOf(periods: readonly Period[]): { fromDay: string; toDay: string } {
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  return { fromDay: day(periods.at(-1)!.startMs), toDay: day(periods[0]!.endMs - 1) };
}

export function invalidField(path: string, message: string): CodedError {
  return new CodedError('bandwidth.invalid', 'Some fields are not as they must be; see `fields`.', {
    fields: [{ path, code: 'invalid', message }],
  });
}

type Granularity = 'month' | 'day';

interface Period {
  /** `2025-11` or `2025-11-03`. */
  name: string;
  startMs: number;
  endMs: number;
}

/** Months and days of UTC as texts and moments. */
export function periodOf(name: string): Period {
  const [year, month, day] = name.split('-').map(Number) as [number, number, number | undefined];
  const startMs = Date.UTC(year, month - 1, day ?? 1);
  const endMs = day === undefined ? Date.UTC(year, month, 1) : startMs + 86_400_000;
  return { name, startMs, endMs };
}

/** The period that holds this moment. */
function periodAt(ms: number, granularity: Granularity): Period {
  return periodOf(new Date(ms).toISOString().slice(0, granularity === 'month' ? 7 : 10));
}

/** The periods that touch the time from `fromMs` up to `toMs`, newest first. */
export function periodsBetween(fromMs: number, toMs: number, granularity: Granularity): Period[] {
  const periods: Period[] = [];
  for (let period = periodAt(toMs - 1, granularity); period.endMs > fromMs; ) {
    periods.push(period);
    period = periodAt(period.startMs - 1, granularity);
  }
  return periods;
}

/** True for a text that names a real month or day. */
function isPeriodName(text: string): boolean {
  const match = /^(20\d{2})-(0[1-9]|1[0-2])(?:-(\d{2}))?$/.exec(text);
  if (match === null) return false;
  return new Date(periodOf(text).startMs).toISOString().startsWith(text);
}
