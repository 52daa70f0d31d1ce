/**
 * Which scans start next (NET-8.2): two hourly, eight daily and two of customers at once, twelve addresses at most, one
 * scan of an address at a time. Requests come before routine; then those that waited longest.
 */
import type { ScanProfile } from '#contracts/port-scan/index.ts';
import type { ScanPlan, ScanPool, ScanTarget } from '#contracts/sensor-api/port-scans.ts';

export const poolSizes: Readonly<Record<ScanPool, number>> = { customer: 2, daily: 8, hourly: 2 };
export const addressesMax = 12;
const hourMs = 3_600_000;
/** Longer than from one daily boundary to the next, also where the clock changes. */
const dayMs = 26 * hourMs;
/** A start that is further ahead was noted before the clock was set back: when it was is unknown. */
const aheadMaxMs = 60_000;

/** A scan that may start. */
export interface ChosenScan {
  target: ScanTarget;
  profile: ScanProfile;
  pool: ScanPool;
  requestId: string | null;
}

/** What the ledger knows of the past. */
export interface PastScans {
  /** The scan id was used, so it never runs again (NET-2.7.3). */
  wasStarted(scanId: string): boolean;
  /** When the target's last attempt with this profile started, of any pool, by the wall clock of then; null for none. */
  lastStartedAtMs(targetId: string, profile: ScanProfile): number | null;
}

export interface ChooseInput {
  plan: ScanPlan;
  running: readonly { pool: ScanPool; address: string }[];
  past: PastScans;
  nowMs: number;
  /** Whether this host may scan the target now. */
  mayScan(target: ScanTarget): boolean;
}

/** The scans to start now, in their order. */
export function chooseScans({ plan, running, past, nowMs, mayScan }: ChooseInput): ChosenScan[] {
  const busy = new Set(running.map(({ address }) => address));
  const left = { ...poolSizes };
  for (const { pool } of running) left[pool] -= 1;
  const chosen: ChosenScan[] = [];
  const take = (scan: ChosenScan): void => {
    if (left[scan.pool] <= 0 || busy.size >= addressesMax || busy.has(scan.target.address)) return;
    if (!mayScan(scan.target)) return;
    busy.add(scan.target.address);
    left[scan.pool] -= 1;
    chosen.push(scan);
  };
  for (const scan of dueRequests(plan, past)) take(scan);
  for (const scan of dueDaily(plan, past, nowMs)) take(scan);
  for (const scan of dueHourly(plan, past, nowMs)) take(scan);
  return chosen;
}

function dueRequests(plan: ScanPlan, past: PastScans): ChosenScan[] {
  const targets = new Map(plan.targets.map((target) => [target.target_id, target]));
  const withdrawn = new Set(plan.withdrawn);
  return plan.requests.flatMap(({ scan_request_id: requestId, target_id: targetId }) => {
    const target = targets.get(targetId);
    // A stale copy of a request that ran must not hold up the hourly scan of its target (NET-2.7.9).
    if (!target || withdrawn.has(requestId) || past.wasStarted(requestId)) return [];
    return [{ target, profile: 'full' as const, pool: 'customer' as const, requestId }];
  });
}

/** Without a policy there are no daily scans. A full scan since the boundary, also one of a request, is that day's. */
function dueDaily(plan: ScanPlan, past: PastScans, nowMs: number): ChosenScan[] {
  const boundaryMs = Date.parse(plan.scan_policy?.daily_full_scan_at ?? '');
  if (!(boundaryMs <= nowMs)) return [];
  // A clock that was ahead of the monitor's noted a start after boundaries that are still to come.
  const isDue = (last: number) => last < boundaryMs || nowMs - last >= dayMs || isUnknown(last, nowMs);
  return oldestFirst(plan.targets, past, 'full', isDue).map((target) => ({
    ...{ target, profile: 'full' as const, pool: 'daily' as const, requestId: null },
  }));
}

function dueHourly(plan: ScanPlan, past: PastScans, nowMs: number): ChosenScan[] {
  const isDue = (last: number) => nowMs - last >= hourMs || isUnknown(last, nowMs);
  return oldestFirst(plan.targets, past, 'common', isDue).map((target) => ({
    ...{ target, profile: 'common' as const, pool: 'hourly' as const, requestId: null },
  }));
}

/** A clock that was set back must not stop scans until it has caught up. */
function isUnknown(last: number, nowMs: number): boolean {
  return last > nowMs + aheadMaxMs;
}

function oldestFirst(
  targets: readonly ScanTarget[],
  past: PastScans,
  profile: ScanProfile,
  isDue: (lastMs: number) => boolean,
): ScanTarget[] {
  return targets
    .map((target) => ({
      target,
      last: past.lastStartedAtMs(target.target_id, profile) ?? Number.NEGATIVE_INFINITY,
    }))
    .filter(({ last }) => isDue(last))
    .sort((a, b) => a.last - b.last || (a.target.target_id < b.target.target_id ? -1 : 1))
    .map(({ target }) => target);
}
