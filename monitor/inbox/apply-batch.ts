import { setImmediate } from 'node:timers/promises';
import { decodedBytesMax, sliceRowsMax } from '#contracts/sensor-api/decode-slices.ts';
import { aheadSecondsMax } from '#contracts/sensor-api/http.ts';
import type { SetAside } from '#contracts/sensor-api/set-aside.ts';
import type {
  HostInventory,
  ProbeResult,
  TelemetryGap,
  TelemetryMinute,
} from '#contracts/sensor-api/telemetry.ts';
import type { FactUpload } from '#monitor/facts/index.ts';
import { readStored } from '#monitor/intake/index.ts';
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
  /** What was left out of it. */
  setAside: SetAside;
}

/**
 * Turns uploads of one share into facts. Everything, the uploads' end included, is one transaction under the lease's
 * term: it happens wholly or not at all, and only once, because what is no longer pending is left alone.
 *
 * What would take more memory than the largest upload may is left for the next batch. Returns how many were applied.
 */
export async function applyBatch(
  deps: InboxDeps,
  share: number,
  batch: readonly PendingUpload[],
  lease: Lease,
): Promise<number> {
  const decoded = await decodeWhatFits(deps, batch);
  const minutes = [...new Set(decoded.flatMap(({ upload }) => upload.minutes.map(({ minute }) => minute)))];
  await deps.facts.prepare(minutes);
  await deps
    .db()
    .transaction()
    .execute(async (trx) => {
      // A worker that freezes in here must not keep its row locks longer than its lease.
      await nameTerm(trx, lease, deps.leaseSeconds ?? 15);
      if (!(await holdsTerm(trx, lease.name, lease.term))) throw new LeaseLost();
      const ids = decoded.map(({ id }) => id);
      const isPending = await lockUploads(trx, ids);
      const uploads = decoded.filter(({ id }) => isPending.has(id)).map(({ upload }) => upload);
      if (uploads.length > 0) await addUploads(deps, trx, uploads);
      await finishUploads(trx, ids, 'applied');
      await endAttempt(trx, share, lease.term);
    });
  return decoded.length;
}

interface Decoded {
  id: number;
  upload: AppliedUpload;
}

/** The first uploads of a batch, as many as the memory of the largest allows. Gives way to requests in between. */
async function decodeWhatFits(deps: InboxDeps, batch: readonly PendingUpload[]): Promise<Decoded[]> {
  const decoded: Decoded[] = [];
  let bytes = 0;
  let rows = 0;
  for (const pending of batch) {
    const read = await readStored(pending.body, pending.encoding);
    bytes += read.decodedBytes;
    if (decoded.length > 0 && bytes > decodedBytesMax) break;
    decoded.push({ id: pending.id, upload: await prepare(deps, pending, read) });
    rows += read.rows;
    if (rows < sliceRowsMax) continue;
    await setImmediate();
    rows = 0;
  }
  return decoded;
}

async function prepare(
  deps: InboxDeps,
  pending: PendingUpload,
  { upload, setAside }: Awaited<ReturnType<typeof readStored>>,
): Promise<AppliedUpload> {
  const { siteId, sensorId, nowMs } = pending;
  const { minutes, probes: found } = upload;
  const probes = found && found.length > 0 ? ((await deps.probes?.prepare(found, nowMs)) ?? []) : [];
  const gaps = withoutFuture(upload.gaps, nowMs);
  const inventory = upload.inventory && {
    ...upload.inventory,
    observedAtMs: Math.min(upload.inventory.observedAtMs, nowMs),
  };
  return {
    siteId,
    sensorId,
    nowMs,
    minutes,
    gaps,
    probes,
    setAside,
    ...(inventory ? { inventory } : {}),
  };
}

/** A gap is what was not heard; no sensor can know that of a time that has not come. */
function withoutFuture(gaps: readonly TelemetryGap[], nowMs: number): TelemetryGap[] {
  const lastMinute = Math.floor((nowMs / 1000 + aheadSecondsMax) / 60) * 60;
  return gaps
    .filter((gap) => gap.fromMinute <= lastMinute)
    .map((gap) => ({ ...gap, toMinute: Math.min(gap.toMinute, lastMinute) }));
}

/** Rows that are written in one statement a table; a single minute is never divided. */
const appendRowsMax = 32_768;

async function addUploads(deps: InboxDeps, trx: Queryable, uploads: readonly AppliedUpload[]): Promise<void> {
  const facts = uploads.map(
    ({ siteId, sensorId, minutes, gaps }): FactUpload => ({ origin: { siteId, sensorId }, minutes, gaps }),
  );
  const told = await deps.facts.trimUnobservedGaps(trx, facts);
  for (const part of divideUploads(told)) await deps.facts.append(trx, part);
  for (const { siteId, sensorId, probes } of uploads) {
    if (probes.length > 0) await deps.probes?.addResults(trx, { siteId, sensorId }, probes);
  }
  await deps.setAsides?.note(trx, uploads);
  await deps.onUploads?.(trx, uploads);
}

/** Uploads in parts of bounded size, so that the largest do not keep this process from everything else. */
function divideUploads(uploads: readonly FactUpload[]): FactUpload[][] {
  const parts: FactUpload[][] = [];
  let part: FactUpload[] = [];
  let rows = 0;
  for (const { origin, minutes, gaps } of uploads) {
    let fact: FactUpload & { minutes: TelemetryMinute[] } = { origin, minutes: [], gaps };
    part.push(fact);
    for (const minute of minutes) {
      const more = minute.hosts.length + minute.usage.length;
      if (rows > 0 && rows + more > appendRowsMax) {
        parts.push(part);
        fact = { ...fact, minutes: [], gaps: [] };
        part = [fact];
        rows = 0;
      }
      fact.minutes.push(minute);
      rows += more;
    }
  }
  return part.length > 0 ? [...parts, part] : parts;
}
