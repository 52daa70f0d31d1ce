import { CodedError } from '#common/errors/index.ts';
import type { TelemetryRequest } from '#contracts/admin-api/schemas.ts';

export interface SeriesFault {
  /** Such as `targets.0.series.3.timestamp`. */
  path: string;
  message: string;
}

/** Minutes that end later than this after our clock are a wrong clock, not telemetry. */
const aheadMsMax = 5 * 60_000;

/**
 * Throws `protect_traffic.invalid` (details: `fields`) for what the schema can't see: timestamps that are no whole UTC
 * minutes, minutes sent twice or still to come.
 */
export function checkSeries(request: TelemetryRequest, nowMs: number): void {
  const faults: SeriesFault[] = [];
  for (const [t, target] of request.targets.entries()) {
    const seen = new Set<number>();
    for (const [p, point] of target.series.entries()) {
      const path = `targets.${t}.series.${p}`;
      const ms = Date.parse(point.timestamp);
      if (!Number.isFinite(ms) || ms % 60_000 !== 0 || /\.\d*[1-9]/.test(point.timestamp)) {
        faults.push({ path: `${path}.timestamp`, message: 'must be the start of a whole UTC minute' });
      } else if (ms + 60_000 > nowMs + aheadMsMax) {
        faults.push({ path: `${path}.timestamp`, message: 'is a minute that is not over yet' });
      } else if (seen.has(ms)) {
        faults.push({ path: `${path}.timestamp`, message: 'appears twice in one series' });
      }
      seen.add(ms);
    }
  }
  if (faults.length === 0) return;
  throw new CodedError('protect_traffic.invalid', 'Some fields are not as they must be.', {
    fields: faults.slice(0, 20),
  });
}
