/** Which minutes can't be true, by one rule for sender and receiver. */
import {
  linkBpsMax,
  linkMinuteBytesMax,
  ppsMax,
  type SetAsideReason,
  type TelemetryPoint,
} from './schemas.ts';

/** Why a minute can't be true, or null. One such minute must not keep the others of its allocation from being stored. */
export function findImplausible(point: TelemetryPoint): SetAsideReason | null {
  const {
    inbound_bps,
    outbound_bps,
    expected_bps,
    ddos_bps,
    pps,
    expected_pps,
    ddos_pps,
    applications,
    own_scan,
    dropped,
  } = point;
  const { inbound_bps: droppedIn, outbound_bps: droppedOut } = dropped ?? {};
  const isFast = [inbound_bps, outbound_bps, ddos_bps, droppedIn, droppedOut].some(
    (rate) => (rate ?? 0) > linkBpsMax,
  );
  // Both directions together.
  const isExpectedFast = (expected_bps ?? 0) > 2 * linkBpsMax;
  const isDense = [pps, expected_pps, ddos_pps, dropped?.inbound_pps, dropped?.outbound_pps].some(
    (rate) => (rate ?? 0) > ppsMax,
  );
  // A part is not more than the whole.
  const isMore =
    own_scan !== undefined &&
    (own_scan.inbound_bps > (inbound_bps ?? 0) || own_scan.outbound_bps > (outbound_bps ?? 0));
  if (isFast || isExpectedFast || isDense || isMore) return 'rate_implausible';
  const isLarge = applications.some(
    (one) => one.inbound_bytes > linkMinuteBytesMax || one.outbound_bytes > linkMinuteBytesMax,
  );
  return isLarge ? 'bytes_implausible' : null;
}
