import type { TelemetryPoint } from '#contracts/admin-api/schemas.ts';
import { worldMinuteMs } from '#operations/testing/world-time.ts';

/** The start of a minute that lies so far before the beginning of a world, unix milliseconds. */
export const minutesAgo = (minutes: number) => worldMinuteMs - minutes * 60_000;

/** A minute with these bytes. */
export function point(
  atMs: number,
  bytes: { in: number | null; out: number | null },
  more: Partial<TelemetryPoint> = {},
) {
  return {
    timestamp: new Date(atMs).toISOString(),
    inbound_bps: bytes.in === null ? null : (bytes.in * 8) / 60,
    outbound_bps: bytes.out === null ? null : (bytes.out * 8) / 60,
    pps: 12.5,
    expected_bps: null,
    expected_pps: null,
    ddos_bps: null,
    ddos_pps: null,
    coverage: 1,
    applications: [],
    ...more,
  } satisfies TelemetryPoint;
}
