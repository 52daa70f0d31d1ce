/** What can fail in a program itself, judged from stored facts, for alerts and pages of both programs. */
import { formatBytes, formatDuration, formatPercent } from '#service-kit/pages/index.ts';

export type SystemKind = 'disk_filling' | 'loop_failing';

/** `unknown` is also what lies between the limits: it neither opens nor resolves an alert. */
export interface SystemSubject {
  kind: SystemKind;
  /** `disk:HOST:PATH`, `loop:NAME`. */
  key: string;
  name: string;
  verdict: 'bad' | 'good' | 'unknown';
  /** Measured values, for people and receivers of webhooks. */
  details: Record<string, string | number | boolean | null>;
}

/** The measured values in one sentence without its full stop. */
export function measuredOfSystem(kind: SystemKind, details: SystemSubject['details']): string {
  if (kind === 'disk_filling') {
    const free = `${formatBytes(Number(details.free_bytes))} free (${formatPercent(Number(details.free_share))})`;
    const hours = details.hours_left === null ? null : Number(details.hours_left);
    return hours === null ? free : `${free}, full in ${formatDuration(hours * 3600)} at the present speed`;
  }
  const since = formatDuration(Number(details.seconds));
  return details.error === null
    ? `it has not run for ${since}`
    : `it has failed for ${since}: ${details.error}`;
}

export const systemKindNames: Readonly<Record<SystemKind, string>> = {
  disk_filling: 'Disk almost full',
  loop_failing: 'Background task failing',
};
