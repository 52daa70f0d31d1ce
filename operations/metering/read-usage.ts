import { type Actor, forbidden, reachesTenant, requireStaff } from '#operations/accounts/index.ts';
import {
  type FleetAccount,
  type FleetKey,
  type KeyUsage,
  listKeyUsage,
  listTopAccounts,
  listTopKeys,
} from '#operations/views/usage-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';
import {
  type MonthUsage,
  type OveragePrice,
  overageCount,
  overageQuanta,
  type Projection,
  projectCount,
} from './usage.ts';

/** A month of one account, as its customer sees it. */
export interface AccountUsage extends MonthUsage {
  tenantId: number;
  overageCount: number;
  overageQuanta: number;
  /** Null before an hour of the month is over. */
  projection: (Projection & { overageQuanta: number }) | null;
  keys: KeyUsage[];
  days: store.DayUsage[];
}

/** A month of all accounts. */
export interface FleetUsage extends Pick<MonthUsage, 'period' | 'isOpen' | 'startsAt' | 'endsAt' | 'asOf'> {
  count: number;
  accountCount: number;
  /** Accounts above their free quota. */
  overAccountCount: number;
  overageQuanta: number;
  chargedQuanta: number;
  days: store.DayUsage[];
  /** One page of them, most requests first. */
  accounts: (FleetAccount & { overageCount: number; overageQuanta: number })[];
}

interface UsageDeps {
  includedPerMonth: number;
  price: OveragePrice;
}

/** Rows of a page. */
export const rowsPerPage = 50;

const partOf = (page: number) => ({ limit: rowsPerPage, offset: (page - 1) * rowsPerPage });

/** The account's month; null for a month that has not begun. Throws `accounts.forbidden` for another's account. */
export async function readUsage(
  db: Queryable,
  deps: UsageDeps,
  actor: Actor,
  query: { tenantId: number; period: string | null },
): Promise<AccountUsage | null> {
  const { tenantId } = query;
  if (!reachesTenant(actor, tenantId)) throw forbidden('This account is not yours.');
  const month = await store.findMonth(db, tenantId, query.period, deps);
  if (month.startsAt > month.asOf) return null;
  const [keys, days] = await Promise.all([
    listKeyUsage(db, tenantId, month.period),
    store.listDays(db, tenantId, month.period),
  ]);
  const projection = projectCount(month);
  const costOf = (count: number) => overageQuanta(overageCount(count, month.includedCount), month.price);
  return {
    ...month,
    tenantId,
    overageCount: overageCount(month.count, month.includedCount),
    overageQuanta: costOf(month.count),
    projection: projection && { ...projection, overageQuanta: costOf(projection.count) },
    keys,
    days,
  };
}

/** All accounts of a month, for staff; null for a month that has not begun. */
export async function readFleetUsage(
  db: Queryable,
  deps: UsageDeps,
  actor: Actor,
  period: string | null,
  page: number,
): Promise<FleetUsage | null> {
  requireStaff(actor);
  const month = await store.findMonth(db, null, period, deps);
  if (month.startsAt > month.asOf) return null;
  const [totals, days, accounts] = await Promise.all([
    store.sumMonth(db, month.period, deps),
    store.listDays(db, null, month.period),
    listTopAccounts(db, month.period, deps, partOf(page)),
  ]);
  return {
    period: month.period,
    isOpen: month.isOpen,
    startsAt: month.startsAt,
    endsAt: month.endsAt,
    asOf: month.asOf,
    ...totals,
    days,
    accounts: accounts.map((account) => {
      const over = overageCount(account.count, account.includedCount);
      return { ...account, overageCount: over, overageQuanta: overageQuanta(over, account.price) };
    }),
  };
}

/** A page of the keys of a month, most requests first. For staff. */
export async function readFleetKeys(
  db: Queryable,
  actor: Actor,
  period: string,
  page: number,
): Promise<{ keys: FleetKey[]; keyCount: number }> {
  requireStaff(actor);
  return listTopKeys(db, period, partOf(page));
}

/** The last months of all accounts for staff, or of one account for its members. */
export async function readMonths(
  db: Queryable,
  actor: Actor,
  tenantId: number | null,
  months: number,
): Promise<store.MonthSum[]> {
  if (tenantId === null) requireStaff(actor);
  else if (!reachesTenant(actor, tenantId)) throw forbidden('This account is not yours.');
  return store.listMonths(db, tenantId, months);
}
