/**
 * What the monitor's clock shows, from the `Date` of its answers, carried on by this host's uptime: a clock of ours that
 * is set between two answers shows at once.
 */
import type { HostTime, Moment } from './index.ts';

export interface MonitorTime {
  /** Takes the `Date` header of an answer to a request that was sent at `sent`. */
  note(date: string | null, sent: Moment): void;
  /**
   * How far a wall clock with this offset to the host's uptime is ahead of the monitor's now, negative when behind. Null
   * while no answer told the time.
   */
  skewMs(offsetMs: number): number | null;
}

/** Without a newer answer for so long, what is known of the monitor's clock is no longer relied on. */
const knownForMs = 7 * 86_400_000;

export function createMonitorTime(host: Pick<HostTime, 'read'>): MonitorTime {
  let known: { offsetMs: number; atMs: number } | null = null;
  return {
    note(date, sent) {
      const toldMs = date === null ? Number.NaN : Date.parse(date);
      if (!Number.isFinite(toldMs)) return;
      const { uptimeMs } = host.read();
      // The header has whole seconds; the answer was made about half-way.
      known = { offsetMs: toldMs + 500 - (sent.uptimeMs + uptimeMs) / 2, atMs: uptimeMs };
    },
    skewMs(offsetMs) {
      if (known === null || host.read().uptimeMs - known.atMs > knownForMs) return null;
      return offsetMs - known.offsetMs;
    },
  };
}
