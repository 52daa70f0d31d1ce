/**
 * Whether an upload's times can be right. Each upload knows by which clock it was stamped; how far that clock was off shows
 * by the monitor's, independent of the present clock.
 *
 * Promises: what a clock stamped that is ahead waits until the clock is set; what one stamped that is behind waits for an
 * hour, because such a clock may stay as it is. Only the clock of now stamps again, and only while it agrees.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { clocksAgreeMs, type HostTime, type MonitorTime, offsetOf } from '#sensor/host-time/index.ts';
import type { PendingUpload, Spool } from '#sensor/spool/index.ts';

/** How long uploads of a clock that is behind wait for it to be set. */
const behindPatienceMs = 3_600_000;

export interface UplinkTime {
  host: HostTime;
  monitor: MonitorTime;
  /** Asks the monitor for anything, so that its clock gets known. Rejects where it does not answer. */
  ask(): Promise<unknown>;
}

export type TimeCheck = ReturnType<typeof createTimeCheck>;

export function createTimeCheck(
  deps: UplinkTime & { spool: Pick<Spool, 'restamp' | 'noteRightClock'>; reporter: Reporter; clock: Clock },
) {
  const { host, monitor, spool, reporter, clock } = deps;
  /** Since when the clock of now has been behind; null: it is not. */
  let behindSinceMs: number | null = null;
  let isHolding = false;

  const skewOfNow = () => monitor.skewMs(offsetOf(host.read()));
  const agrees = () => Math.abs(skewOfNow() ?? 0) <= clocksAgreeMs;

  /** Stamps an upload again that the monitor does not have. False: the clock of now is no better. */
  function stampAgain(upload: PendingUpload): boolean {
    if (!agrees()) return false;
    const now = host.read();
    const isMoved = spool.restamp(upload, { bootId: host.bootId, offsetMs: offsetOf(now) }, now.wallMs);
    if (isMoved) reporter.warn('an upload of a wrong clock was stamped again', { sequence: upload.sequence });
    return isMoved;
  }

  function isWaitedFor(stampedSkewMs: number, skewMs: number): boolean {
    if (stampedSkewMs > 0 || skewMs > 0 || behindSinceMs === null) return true;
    return clock.monotonicMs() - behindSinceMs < behindPatienceMs;
  }

  return {
    stampAgain,
    /** The clock of now does not agree with the monitor's. */
    isWrong: () => !agrees(),
    /**
     * What to do with an upload: send it, look again because it was stamped again, or hold it. `isUncertain`: the monitor may
     * have it already, so its times must not change before an answer says that it does not.
     */
    async check(upload: PendingUpload, isUncertain: boolean): Promise<'send' | 'again' | 'hold'> {
      // A monitor that does not answer will not take the upload either.
      if (skewOfNow() === null) await deps.ask().catch(() => {});
      const skewMs = skewOfNow();
      if (skewMs === null) return 'send';
      spool.noteRightClock({ bootId: host.bootId, offsetMs: offsetOf(host.read()) - skewMs });
      behindSinceMs = skewMs < -clocksAgreeMs ? (behindSinceMs ?? clock.monotonicMs()) : null;
      const { stampedBy } = upload;
      const isKnown = stampedBy.bootId !== '' && stampedBy.bootId === host.bootId;
      const stampedSkewMs = isKnown ? monitor.skewMs(stampedBy.offsetMs)! : 0;
      const isWorse = !isKnown || Math.abs(stampedSkewMs) > Math.abs(skewMs);
      if (!isUncertain && isWorse && stampAgain(upload)) return 'again';
      if (Math.abs(stampedSkewMs) <= clocksAgreeMs) {
        isHolding = false;
        return 'send';
      }
      // The monitor may have it already: it says so, or that it does not take this time.
      if (isUncertain || !isWaitedFor(stampedSkewMs, skewMs)) return 'send';
      if (!isHolding)
        reporter.error('the clock of this host is wrong; uploads wait until it is set', {
          ahead_seconds: Math.round(skewMs / 1000),
        });
      isHolding = true;
      return 'hold';
    },
  };
}
