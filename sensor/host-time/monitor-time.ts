/**
 * The monitor's clock, from the `Date` of its answers, extrapolated with this host's uptime: a step of this host's
 * clock between two answers is detected at once.
 */
import type { HostTime, Moment } from './index.ts';

export type MonitorTime = ReturnType<typeof createMonitorTime>;

/** An older answer is no longer used. */
const knownForMs = 7 * 86_400_000;

export function createMonitorTime(host: Pick<HostTime, 'read'>) {
  let known: { offsetMs: number; atMs: number } | null = null;
  return {
    /** Adds the `Date` header of the answer to a request that was sent at `sent`. */
    note(date: string | null, sent: Moment) {
      const toldMs = date === null ? Number.NaN : Date.parse(date);
      if (!Number.isFinite(toldMs)) return;
      const { uptimeMs } = host.read();
      // The header has whole seconds; the answer was created about half-way through the round trip.
      known = { offsetMs: toldMs + 500 - (sent.uptimeMs + uptimeMs) / 2, atMs: uptimeMs };
    },
    /**
     * How far a wall clock with this offset to the host's uptime is ahead of the monitor's; negative when behind. Null
     * while no answer had a time.
     */
    skewMs(offsetMs: number): number | null {
      if (known === null || host.read().uptimeMs - known.atMs > knownForMs) return null;
      return offsetMs - known.offsetMs;
    },
  };
}
