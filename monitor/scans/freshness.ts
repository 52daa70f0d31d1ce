/** How long what a scan observed counts as fresh, from the observation itself (NET-2.7.10). */
const commonFreshMs = 2 * 3_600_000;
const fullFreshMs = 27 * 3_600_000;

/** `stale`: neither a common scan of the last two hours nor a full scan of the last 27 saw the port. */
export function freshnessOf(
  port: { commonAtMs: number | null; fullAtMs: number | null },
  nowMs: number,
): 'fresh' | 'stale' {
  const isWithin = (ms: number | null, keptMs: number) => ms !== null && nowMs - ms <= keptMs;
  return isWithin(port.commonAtMs, commonFreshMs) || isWithin(port.fullAtMs, fullFreshMs) ? 'fresh' : 'stale';
}
