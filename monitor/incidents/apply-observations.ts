/**
 * Applies what sensors say of incidents: ownership first, then the highest revision of each observation, then the
 * incidents that they make. All of it belongs to the caller's transaction. A revision that was applied before, or is
 * lower than one that was, changes no incident.
 */

import { CodedError } from '#common/errors/index.ts';
import { keptMs } from '#contracts/retention.ts';
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import { aheadSecondsMax } from '#contracts/sensor-api/http.ts';
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry.ts';
import type { UploadConsumer } from '#monitor/intake/index.ts';
import { share } from '#monitor/placements/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { IncidentChange, IncidentsDeps } from './index.ts';
import { judgeOwnership, type Statement } from './judge-ownership.ts';
import { regroup } from './regroup.ts';
import * as store from './store.ts';

/** Observations of one sensor. */
export interface SensorObservations {
  siteId: number;
  sensorId: number;
  observations: readonly IncidentObservation[];
}

interface AppliedCounts {
  /** Revisions that were stored. */
  applied: number;
  /** Of those: about servers of other nodes. */
  foreign: number;
  /** Revisions that were known, or came after a higher one. */
  repeated: number;
}

interface Applied {
  counts: AppliedCounts;
  changes: IncidentChange[];
}

/** So long into an attack its curve has every second, then ten seconds at a time. */
const secondsKeptMs = 2 * 3_600_000;
const coarseMs = 10_000;

export async function applyObservations(
  deps: Pick<IncidentsDeps, 'events' | 'onChange'>,
  trx: Queryable,
  uploads: readonly SensorObservations[],
): Promise<Applied> {
  await share(trx);
  await store.lockSites(trx, [...new Set(uploads.map(({ siteId }) => siteId))]);
  const given = uploads.flatMap(({ siteId, sensorId, observations }) =>
    observations.map(({ seconds, ...said }) => ({ siteId, sensorId, said, seconds })),
  );
  const verdicts = await judgeOwnership(trx, given);
  const judged = given.map((one, i) => ({ ...one, ...verdicts[i]! }));
  const newest = new Map<string, (typeof judged)[number]>();
  for (const one of judged) {
    const held = newest.get(identityOf(one));
    if (!held || held.said.revision < one.said.revision) newest.set(identityOf(one), one);
  }
  const heads = [...newest.values()];
  const former = await store.listRowsOf(trx, heads);
  const formerIds = await store.listIncidentsOf(trx, former);
  const rows = await store.upsertObservations(
    trx,
    heads.map(({ seconds: _, ...one }) => one),
  );
  const rowOf = new Map(rows.map((row) => [identityOf(heads[row.index]!), row]));
  await store.insertDetails(
    trx,
    judged.map((one) => ({ row: rowOf.get(identityOf(one))!.id, ...detailOf(one.said, one.seconds) })),
  );
  const fresh = rows.filter(({ isNewest }) => isNewest);
  const own = fresh.filter(({ index }) => !heads[index]!.isForeign);
  const changes =
    own.length > 0
      ? await regroup(
          deps,
          trx,
          own.map(({ id }) => id),
          formerIds,
        )
      : [];
  const foreign = fresh.length - own.length;
  return { counts: { applied: fresh.length, foreign, repeated: judged.length - fresh.length }, changes };
}

const identityOf = ({ sensorId, said, isForeign }: Statement & { isForeign: boolean }) =>
  `${sensorId} ${said.id} ${isForeign}`;

/** The seconds that an observation may have: within its own times, and ten at a time after two hours. */
function detailOf(said: Statement['said'], seconds: IncidentObservation['seconds']) {
  const kept = new Map<number, { bps: number; pps: number }>();
  for (const { atMs, bps, pps } of seconds) {
    if (atMs < said.startedAtMs - coarseMs || atMs > said.lastObservedAtMs) continue;
    const isFine = atMs - said.startedAtMs < secondsKeptMs;
    const at = isFine ? atMs : Math.floor(atMs / coarseMs) * coarseMs;
    const held = kept.get(at);
    kept.set(at, { bps: Math.max(bps, held?.bps ?? 0), pps: Math.max(pps, held?.pps ?? 0) });
  }
  return {
    revision: said.revision,
    at: [...kept.keys()],
    bps: [...kept.values()].map(({ bps }) => bps),
    pps: [...kept.values()].map(({ pps }) => pps),
    remotes: said.remotes,
    observedAtMs: said.lastObservedAtMs,
  };
}

// Takes `incidents` out of uploads.

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
