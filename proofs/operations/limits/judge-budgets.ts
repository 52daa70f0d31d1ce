/**
 * Judges a record of requests by what must be true of a sliding log.
 *
 * A request was decided at some moment between its sending and its answer, so each check takes the moments that favour the program: an offence
 * is certain.
 */

/** A request of a key; times in ms of one clock. */
export interface Asked {
  sentMs: number;
  receivedMs: number;
  /** Null: the connection was lost, so it may have been. */
  isAllowed: boolean | null;
  /** Of the header `RateLimit`. */
  remaining: number;
  resetSeconds: number;
}

export interface BudgetRules {
  capacity: number;
  windowMs: number;
}

/** Clocks of one machine differ by less than this in a minute. */
const clockMs = 50;

/** Offences of one key as sentences, at most a few. */
export function judgeBudget(key: string, asked: readonly Asked[], rules: BudgetRules): string[] {
  const bySent = [...asked].sort((a, b) => a.sentMs - b.sentMs);
  const allowed = bySent.filter(({ isAllowed }) => isAllowed === true);
  const possible = bySent.filter(({ isAllowed }) => isAllowed !== false);
  return [
    ...findExcess(allowed, rules),
    ...findEarlyRefusal(bySent, possible, rules),
    ...findWrongHeader(bySent, allowed, possible, rules),
  ].map((offence) => `${key}: ${offence}`);
}

/** More than the capacity within a window, all of it for certain. */
function findExcess(allowed: readonly Asked[], { capacity, windowMs }: BudgetRules): string[] {
  for (const [i, first] of allowed.entries()) {
    const endMs = first.sentMs + windowMs - clockMs;
    let count = 0;
    for (let j = i; j < allowed.length && allowed[j]!.sentMs < endMs; j += 1)
      if (allowed[j]!.receivedMs < endMs) count += 1;
    if (count > capacity) return [`${count} requests were allowed within a window of ${capacity}`];
  }
  return [];
}

/** A refusal at a time when the window can't have been full. */
function findEarlyRefusal(
  bySent: readonly Asked[],
  possible: readonly Asked[],
  rules: BudgetRules,
): string[] {
  for (const one of bySent) {
    if (one.isAllowed !== false) continue;
    const most = countPossible(possible, one, rules);
    if (most < rules.capacity) return [`a request was refused when at most ${most} were within the window`];
  }
  return [];
}

/** `RateLimit` that names another number than there can be, or a wait that was not needed. */
function findWrongHeader(
  bySent: readonly Asked[],
  allowed: readonly Asked[],
  possible: readonly Asked[],
  rules: BudgetRules,
): string[] {
  const { capacity, windowMs } = rules;
  for (const one of bySent) {
    const { remaining, resetSeconds } = one;
    if (one.isAllowed === null) continue;
    if (resetSeconds < 1 || resetSeconds > Math.ceil(windowMs / 1000)) return [`a wait of ${resetSeconds} s`];
    if (!one.isAllowed) {
      if (remaining !== 0) return [`a refusal that leaves ${remaining}`];
      const soonestMs = one.sentMs + (resetSeconds - 1) * 1000 - clockMs;
      if (allowed.some((next) => next.sentMs > one.receivedMs && next.receivedMs < soonestMs))
        return [`a request was allowed before the ${resetSeconds} s that an earlier one was told to wait`];
      continue;
    }
    const least = capacity - countPossible(possible, one, rules);
    const most = capacity - countCertain(allowed, one, rules);
    if (remaining < least || remaining > most)
      return [`${remaining} requests are named as left instead of ${least} to ${most}`];
  }
  return [];
}

/** Requests that may have been allowed and within the window when this one was decided, itself among them. */
function countPossible(possible: readonly Asked[], one: Asked, { windowMs }: BudgetRules): number {
  const fromMs = one.sentMs - windowMs - clockMs;
  let count = 0;
  for (const other of possible) {
    if (other.sentMs > one.receivedMs) break;
    if (other.receivedMs > fromMs) count += 1;
  }
  return count;
}

/** Those that were within it for certain, and this one. */
function countCertain(allowed: readonly Asked[], one: Asked, { windowMs }: BudgetRules): number {
  const fromMs = one.receivedMs - windowMs + clockMs;
  let count = 1;
  for (const other of allowed) {
    if (other.sentMs > one.sentMs) break;
    if (other !== one && other.receivedMs < one.sentMs && other.sentMs > fromMs) count += 1;
  }
  return count;
}
