import { aheadSecondsMax } from '#contracts/sensor-api/http.ts';
import {
  decodeUpload,
  decompressUpload,
  type HostInventory,
  type ProbeResult,
  type TelemetryGap,
  type TelemetryMinute,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { holdsTerm, type Lease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { InboxDeps } from './index.ts';
import { endAttempt, finishUploads, lockUploads, nameTerm, type PendingUpload } from './store.ts';

/** Thrown where another worker has taken over; nothing was written. */
export class LeaseLost extends Error {}

/** An upload as it is being applied. */
export interface AppliedUpload {
  siteId: number;
  sensorId: number;
  /** The database's time. */
  nowMs: number;
  minutes: readonly TelemetryMinute[];
  gaps: readonly TelemetryGap[];
  /** What its sensor probed, within the time that is kept. */
  probes: readonly ProbeResult[];
  inventory?: HostInventory;
}

/**
 * Turns uploads of one share into facts. Everything, the uploads' end included, is one transaction under the lease's
 * term: it happens wholly or not at all, and only once, because what is no longer pending is left alone.
 */
export async function applyBatch(
  deps: InboxDeps,
  share: number,
  batch: readonly PendingUpload[],
  lease: Lease,
): Promise<void> {
  const decoded: { id: number; upload: AppliedUpload }[] = [];
  for (const pending of batch) decoded.push({ id: pending.id, upload: await decode(deps, pending) });
  const minutes = [...new Set(decoded.flatMap(({ upload }) => upload.minutes.map(({ minute }) => minute)))];
  await deps.facts.prepare(minutes);
  await deps
    .db()
    .transaction()
    .execute(async (trx) => {
      // A worker that freezes in here must not keep its row locks longer than its lease.
      await nameTerm(trx, lease, deps.leaseSeconds ?? 15);
      if (!(await holdsTerm(trx, lease.name, lease.term))) throw new LeaseLost();
      const ids = batch.map(({ id }) => id);
      const isPending = await lockUploads(trx, ids);
      const uploads = decoded.filter(({ id }) => isPending.has(id)).map(({ upload }) => upload);
      if (uploads.length > 0) await addUploads(deps, trx, uploads);
      await finishUploads(trx, ids, 'applied');
      await endAttempt(trx, share, lease.term);
    });
}

async function decode(deps: InboxDeps, pending: PendingUpload): Promise<AppliedUpload> {
  const { siteId, sensorId, nowMs, body, encoding } = pending;
  const decoded = decodeUpload(decompressUpload(body, encoding));
  const { minutes, probes: found } = decoded;
  const probes = found && found.length > 0 ? ((await deps.probes?.prepare(found, nowMs)) ?? []) : [];
  const gaps = withoutFuture(decoded.gaps, nowMs);
  const inventory = decoded.inventory && {
    ...decoded.inventory,
    observedAtMs: Math.min(decoded.inventory.observedAtMs, nowMs),
  };
  return { siteId, sensorId, nowMs, minutes, gaps, probes, ...(inventory ? { inventory } : {}) };
}

/** A gap is what was not heard; no sensor can know that of a time that has not come. */
function withoutFuture(gaps: readonly TelemetryGap[], nowMs: number): TelemetryGap[] {
  const lastMinute = Math.floor((nowMs / 1000 + aheadSecondsMax) / 60) * 60;
  return gaps
    .filter((gap) => gap.fromMinute <= lastMinute)
    .map((gap) => ({ ...gap, toMinute: Math.min(gap.toMinute, lastMinute) }));
}

async function addUploads(deps: InboxDeps, trx: Queryable, uploads: readonly AppliedUpload[]): Promise<void> {
  await deps.facts.append(
    trx,
    uploads.map(({ siteId, sensorId, minutes, gaps }) => ({ origin: { siteId, sensorId }, minutes, gaps })),
  );
  for (const { siteId, sensorId, probes } of uploads) {
    if (probes.length > 0) await deps.probes?.addResults(trx, { siteId, sensorId }, probes);
  }
  await deps.onUploads?.(trx, uploads);
}
