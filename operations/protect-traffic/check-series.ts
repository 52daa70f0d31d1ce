import { CodedError } from '#common/errors/index.ts';
import {
  linkBpsMax,
  linkMinuteBytesMax,
  ppsMax,
  type SetAsideReason,
  type TelemetryPoint,
  type TelemetryRequest,
} from '#contracts/admin-api/schemas.ts';

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

/** Why a minute can't be true, or null. One such minute must not keep the others of its allocation from being stored. */
export function findImplausible(point: TelemetryPoint): SetAsideReason | null {
  const { inbound_bps, outbound_bps, expected_bps, ddos_bps, pps, expected_pps, ddos_pps, applications } =
    point;
  const isFast = [inbound_bps, outbound_bps, ddos_bps].some((rate) => (rate ?? 0) > linkBpsMax);
  // Both directions together.
  const isExpectedFast = (expected_bps ?? 0) > 2 * linkBpsMax;
  const isDense = [pps, expected_pps, ddos_pps].some((rate) => (rate ?? 0) > ppsMax);
  if (isFast || isExpectedFast || isDense) return 'rate_implausible';
  const isLarge = applications.some(
    (one) => one.inbound_bytes > linkMinuteBytesMax || one.outbound_bytes > linkMinuteBytesMax,
  );
  return isLarge ? 'bytes_implausible' : null;
}
