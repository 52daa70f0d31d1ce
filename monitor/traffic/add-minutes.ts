import type { TelemetryMinute } from '#contracts/sensor-api/telemetry-codec.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { CaptureIds, Origin } from './index.ts';
import * as store from './store.ts';

/** Adds an upload's capture minutes and host counters, and marks the site's minutes as changed. */
export async function addMinutes(
  trx: Queryable,
  origin: Origin,
  minutes: readonly TelemetryMinute[],
): Promise<CaptureIds> {
  if (minutes.length === 0) return new Map();
  const roles = new Map(minutes.map((minute) => [minute.capture, minute.role]));
  const captures = await store.ensureCaptures(trx, origin, roles);
  const captureOf = (minute: TelemetryMinute) => captures.get(minute.capture)!;
  await store.addCaptureMinutes(trx, origin.siteId, minutes, captureOf);
  for (const minute of minutes) {
    if (minute.hosts.length > 0) await store.addHostMinutes(trx, origin.siteId, captureOf(minute), minute);
  }
  await store.markSiteMinutes(trx, origin.siteId, [...new Set(minutes.map((minute) => minute.minute))]);
  return captures;
}
