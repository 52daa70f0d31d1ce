/** Port scans in words, alike on portal and console. */
import { describeNote, type ScanKind, type ScanProfile, type ScanState } from '#contracts/port-scan/index.ts';
import { badge, formatCount, type Html, type Tone } from '#service-kit/pages/index.ts';

export interface ScanInWords {
  kind: ScanKind;
  profile: ScanProfile;
  state: ScanState;
  isOverdue: boolean;
  /** Null without a result. */
  result: { notes: readonly string[]; portsOpen: number } | null;
}

export function scanKind({ kind, profile }: Pick<ScanInWords, 'kind' | 'profile'>): string {
  if (kind === 'manual') return 'Requested, all ports';
  if (kind === 'automatic') return 'First scan, all ports';
  return profile === 'full' ? 'Daily, all ports' : 'Hourly, 100 ports';
}

const tones: Readonly<Record<ScanInWords['state'], Tone>> = {
  queued: 'info',
  running: 'info',
  complete: 'good',
  partial: 'warn',
  expired: 'warn',
  cancelled: 'neutral',
};

export const scanStateWord = ({ state, isOverdue }: Pick<ScanInWords, 'state' | 'isOverdue'>): string =>
  isOverdue ? 'overdue' : state;

export const scanBadge = (scan: Pick<ScanInWords, 'state' | 'isOverdue'>): Html =>
  badge(scan.isOverdue ? 'warn' : tones[scan.state], scanStateWord(scan));

/** What came of a scan, and why it is not complete. */
export function scanOutcome({ state, result, isOverdue }: ScanInWords): string {
  if (isOverdue) return 'No contact with the sensor for over five minutes. The scan may go on.';
  if (result === null) {
    if (state === 'expired') return 'Not started within 24 hours.';
    if (state === 'cancelled') return 'Cancelled before it began.';
    return state === 'partial' ? 'Ended without a result.' : 'No result yet.';
  }
  const found = result.portsOpen === 1 ? '1 open port' : `${formatCount(result.portsOpen)} open ports`;
  return `${[found, ...result.notes.map(describeNote)].join('; ')}.`;
}
