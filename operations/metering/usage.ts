/** The cost of requests above the free quota, and the projection of a month. */

/** Requests above the free quota cost `rateQuanta` for every `unitRequests` of them. */
export interface OveragePrice {
  unitRequests: number;
  rateQuanta: number;
}

/** Requests above the free quota. */
export function overageCount(count: number, includedCount: number): number {
  return Math.max(0, count - includedCount);
}

/** The total cost of this number of requests above the free quota, rounded down to the quantum. Exact: no fraction is stored. */
export function overageQuanta(overage: number, price: OveragePrice): number {
  return Number((BigInt(overage) * BigInt(price.rateQuanta)) / BigInt(price.unitRequests));
}

/**
 * The charge that is due, and the new high-water mark of charged requests.
 *
 * The mark moves only as far as the money pays for, so the rest is carried; and because both sums are taken from the
 * start of the month, any schedule of charges comes to the same total.
 */
export function dueOverage(
  overage: number,
  chargedCount: number,
  price: OveragePrice,
): { quanta: number; chargedCount: number } {
  const total = overageQuanta(overage, price);
  const quanta = total - overageQuanta(Math.min(chargedCount, overage), price);
  if (quanta <= 0) return { quanta: 0, chargedCount };
  const rate = BigInt(price.rateQuanta);
  const paidRequests = (BigInt(total) * BigInt(price.unitRequests) + rate - 1n) / rate;
  return { quanta, chargedCount: Number(paidRequests) };
}

/** A month of an account. */
export interface MonthUsage {
  /** Such as `2025-11`. */
  period: string;
  /** The open month is the one that runs by the database's clock. */
  isOpen: boolean;
  count: number;
  /** The live setting while the month is open, what was kept when it closed afterwards (API-8.7). */
  includedCount: number;
  /** Requests above the free quota that have been charged. */
  chargedCount: number;
  /** As `includedCount`. */
  price: OveragePrice;
  /** From when on requests of the month could be counted: its start, or the opening of the account. */
  since: Date;
  startsAt: Date;
  endsAt: Date;
  /** The database's present. */
  asOf: Date;
}

const hourMs = 3_600_000;

export interface Projection {
  count: number;
  /** Whole hours that it rests on. */
  hours: number;
}

/** The month's requests if it goes on as it began; null before an hour of it is over, because a busy minute would make millions. */
export function projectCount(
  usage: Pick<MonthUsage, 'isOpen' | 'count' | 'since' | 'endsAt' | 'asOf'>,
): Projection | null {
  const elapsedMs = Math.min(usage.asOf.getTime(), usage.endsAt.getTime()) - usage.since.getTime();
  const hours = Math.floor(elapsedMs / hourMs);
  if (!usage.isOpen) return { count: usage.count, hours: Math.max(0, hours) };
  if (hours < 1) return null;
  const restMs = usage.endsAt.getTime() - usage.asOf.getTime();
  return { count: usage.count + Math.round((usage.count * restMs) / elapsedMs), hours };
}
