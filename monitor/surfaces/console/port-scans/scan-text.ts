/** Words of port scans on pages. */
import { describeNote } from '#contracts/port-scan/index.ts';
import type { Exclusion, ScanAttempt } from '#monitor/scans/index.ts';
import { progressOf } from '#monitor/scans/index.ts';
import { badge, type Content, formatAge, formatDuration } from '#service-kit/pages/index.ts';

const pauseTexts: Readonly<Record<string, string>> = {
  cpu: 'the CPU is busy',
  memory: 'memory is low',
  disk: 'the disk is full',
  plan: 'the plan can not be fetched',
};

/** Why addresses of servers on a node are not scanned. */
export const exclusionTexts: Readonly<Record<Exclusion, string>> = {
  interfaces_stale: 'the sensor did not list its interfaces within 5 min',
  node_ambiguous: 'two clusters have a node of this name',
  not_running: 'not running',
  stale: 'not in the inventory for 15 min',
  not_public: 'not a public address',
  own_address: 'an address of a hypervisor',
  ambiguous: 'several servers have the address or MAC',
  no_source: 'no local address of its family on the WAN interface',
};

/** A sensor reports every ten seconds; after this time without a report a running scan is overdue. */
const overdueMs = 60_000;

export function isOverdue(attempt: ScanAttempt, nowMs: number): boolean {
  return attempt.state === 'running' && nowMs - attempt.reportedAtMs > overdueMs;
}

/** `running, 65 %`, `paused: the CPU is busy`, `no contact for 2 min`, `complete`. */
export function stateBadge(attempt: ScanAttempt, nowMs: number): Content {
  if (attempt.state === 'complete') return badge('good', 'complete');
  if (attempt.state === 'partial') return badge('warn', 'partial');
  if (isOverdue(attempt, nowMs)) return badge('warn', `no report, ${formatAge(attempt.reportedAtMs, nowMs)}`);
  if (attempt.pausedFor !== null)
    return badge('warn', `paused: ${pauseTexts[attempt.pausedFor] ?? attempt.pausedFor}`);
  const progress = progressOf(attempt.phase, attempt.percent);
  return badge('info', progress === null ? 'running' : `running, ${Math.floor(progress)} %`);
}

/** What a reader should know of a scan: its notes, and how long it paused. */
export function remarksOf({ notes, pauses, pausedSeconds }: ScanAttempt): string {
  const paused = pauses > 0 ? [`paused ${pauses} × for ${formatDuration(pausedSeconds)} in all`] : [];
  return [...paused, ...notes.filter((note) => note !== 'paused' || pauses === 0).map(describeNote)].join(
    '; ',
  );
}

const outcomeTexts: Readonly<Record<string, string>> = {
  accepted: 'delivered',
  unchanged: 'delivered',
  unmatched: 'not of a customer any more',
};

export const deliveryText = (outcome: string | null): string =>
  outcome === null ? 'not delivered' : (outcomeTexts[outcome] ?? outcome);
