import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';

/** Concurrent requests of one sensor: it sends one upload, and live windows beside it. */
const underWayMax = 8;
/** Unreadable uploads of one sensor per minute; a working sensor sends none. */
const malformedMax = 30;
const windowMs = 60_000;

/** Thrown for a sensor that sends too much; it keeps its data and retries. */
export class Throttled extends CodedError {
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds: number) {
    super('intake.throttled', message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Prevents one sensor from using this process alone. */
export function createThrottle(clock: Pick<Clock, 'monotonicMs'>) {
  const underWay = new Map<number, number>();
  /** For each sensor, the present time window and the number of malformed uploads in it. */
  const malformed = new Map<number, { endsAtMs: number; count: number }>();

  function waitMs(sensorId: number): number {
    const window = malformed.get(sensorId);
    if (!window) return 0;
    const left = window.endsAtMs - clock.monotonicMs();
    if (left <= 0) malformed.delete(sensorId);
    return left > 0 && window.count >= malformedMax ? left : 0;
  }

  return {
    /** Admits a request before its body is read; call the result when it has ended. Throws `Throttled`. */
    admit(sensorId: number): () => void {
      const wait = waitMs(sensorId);
      if (wait > 0) {
        const message = `This sensor sent ${malformedMax} unreadable uploads within a minute. Check its version and its host.`;
        throw new Throttled(message, Math.ceil(wait / 1000));
      }
      const count = underWay.get(sensorId) ?? 0;
      if (count >= underWayMax) {
        throw new Throttled(
          `This sensor has ${underWayMax} concurrent requests. Send one after the other.`,
          1,
        );
      }
      underWay.set(sensorId, count + 1);
      let hasEnded = false;
      return () => {
        if (hasEnded) return;
        hasEnded = true;
        const left = underWay.get(sensorId)! - 1;
        if (left > 0) underWay.set(sensorId, left);
        else underWay.delete(sensorId);
      };
    },
    /** Records an unreadable upload. */
    noteMalformed(sensorId: number) {
      const window = malformed.get(sensorId);
      if (window && window.endsAtMs > clock.monotonicMs()) window.count += 1;
      else malformed.set(sensorId, { endsAtMs: clock.monotonicMs() + windowMs, count: 1 });
    },
  };
}
