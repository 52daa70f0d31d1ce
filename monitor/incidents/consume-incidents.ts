/** Takes `incidents` out of uploads. */
import { CodedError } from '#common/errors/index.ts';
import { keptMs } from '#contracts/retention.ts';
import { aheadSecondsMax } from '#contracts/sensor-api/http.ts';
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry.ts';
import type { UploadConsumer } from '#monitor/intake/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SensorObservations } from './apply-observations.ts';

/** Retention would delete older ones within the hour. */
const keptForMs = keptMs('attacks');
const minuteOf = (ms: number) => Math.floor(ms / 60_000) * 60;

export function createIncidentConsumer(
  apply: (trx: Queryable, uploads: readonly SensorObservations[]) => Promise<void>,
): UploadConsumer<SensorObservations> {
  return {
    kind: 'incidents',
    // Older minutes are refused (NET-7.1); incidents are kept longer.
    times: ({ incidents = [] }) => ({
      mentioned: incidents.flatMap((one) =>
        [one.detectedAtMs, one.lastObservedAtMs, one.recoveredAtMs ?? 0].map(minuteOf),
      ),
    }),
    select({ siteId, sensorId, nowMs, upload: { incidents = [] } }) {
      const observations = incidents.filter(
        ({ lastObservedAtMs: at }) => at > nowMs - keptForMs && at < nowMs + 2 * aheadSecondsMax * 1000,
      );
      return observations.length === 0 ? null : { siteId, sensorId, observations };
    },
    apply,
  };
}

/** Throws `telemetry.malformed` for an upload that is not one of incidents alone. */
export function requireIncidentsAlone(upload: TelemetryUpload): void {
  const { incidents = [], minutes, gaps, inventory, probes, epochs } = upload;
  const isAlone =
    incidents.length > 0 && minutes.length + gaps.length === 0 && !inventory && !probes && !epochs;
  if (!isAlone)
    throw new CodedError(
      'telemetry.malformed',
      'an upload to /incidents holds incidents and nothing else; send other records to /telemetry',
    );
}
