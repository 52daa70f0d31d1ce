/**
 * Appending uploads.
 *
 * Uploads are sent together, one insert for each table and day. Which ones is noted in PostgreSQL before anything is sent, and
 * the note goes in the caller's transaction (`control/sent-store.ts`): one that is found when an upload comes again says that it may
 * have arrived. What did is settled by the insert's token (`arrival-store.ts`).
 */
import { randomUUID } from 'node:crypto';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { NameApplication } from '../contract/collect-facts.ts';
import type { FactUpload } from '../contract/facts.ts';
import { keepAwake } from '../control/awake-store.ts';
import { placeMinutes } from '../control/capture-store.ts';
import { appendRowsMax } from '../control/divide-uploads.ts';
import { insertGaps } from '../control/gap-store.ts';
import { findSent, forgetSent, noteSent, type SentBatch } from '../control/sent-store.ts';
import { claimTokens, keyOfToken } from '../control/token-store.ts';
import { trimUnobservedGaps } from '../control/unobserved-gap-store.ts';
import { readVerdictEpoch } from '../control/verdict-span-store.ts';
import type { Arrivals } from './arrival-store.ts';
import type { Engine } from './engine-store.ts';
import { findKnown } from './known-store.ts';
import { type PlacedUpload, sendAlone, sendBatch, sendRest } from './send-batch.ts';
import type { WriteOptions } from './write-rows.ts';

interface AppendDeps {
  engine: Engine;
  arrivals: Arrivals;
  db: () => Queryable;
  nameApplication: NameApplication;
}

export async function appendUploads(
  deps: AppendDeps,
  trx: Queryable,
  uploads: readonly FactUpload[],
): Promise<void> {
  const { engine, db, nameApplication } = deps;
  const fresh = await claimTokens(trx, uploads);
  if (fresh.length === 0) return;
  const trimmed = await trimUnobservedGaps(trx, fresh, (_, minutes) =>
    findKnown({ engine, trx, uploads: fresh }, minutes),
  );
  const placed = await placeMinutes(trx, trimmed, db());
  if (placed) {
    const how = { ...placed, nameApplication, verdictEpoch: await readVerdictEpoch(trx) };
    await send(deps, trx, trimmed, how);
  }
  await forgetSent(trx, trimmed);
  await insertGaps(trx, trimmed);
}

/** Sends what was sent before as it was sent then, and the rest in batches. */
async function send(
  { engine, arrivals, db }: AppendDeps,
  trx: Queryable,
  uploads: readonly FactUpload[],
  how: WriteOptions,
): Promise<void> {
  let at = 0;
  const placed = new Map<FactUpload, PlacedUpload>();
  for (const upload of uploads) {
    const { length } = upload.minutes;
    if (length > 0) placed.set(upload, { upload, minutes: how.minutes.slice(at, at + length) });
    at += length;
  }
  const all = [...placed.keys()];
  const sent = await findSent(trx, all);
  const batchOf = ({ origin, token }: FactUpload) => sent.get(keyOfToken(origin.sensorId, token));
  const batches = divideIntoBatches(all.filter((upload) => batchOf(upload) === undefined));
  await noteSent(db(), batches);
  await keepAwake(trx, async () => {
    for (const upload of all) {
      const batchId = batchOf(upload);
      if (batchId === null) await sendAlone(engine, placed.get(upload)!, how);
      else if (batchId !== undefined) await sendRest({ engine, arrivals }, batchId, placed.get(upload)!, how);
    }
    for (const { id, uploads: together } of batches) {
      const own = together.map((upload) => placed.get(upload)!);
      if (id === null) await sendAlone(engine, own[0]!, how);
      else await sendBatch(engine, id, own, how);
    }
  });
}

/** Batches of bounded size; an upload that is larger than a batch is sent by itself. */
function divideIntoBatches(uploads: readonly FactUpload[]): SentBatch[] {
  const batches: SentBatch[] = [];
  let together: FactUpload[] = [];
  let rows = 0;
  const end = () => {
    if (together.length > 0) batches.push({ id: randomUUID(), uploads: together });
    together = [];
    rows = 0;
  };
  for (const upload of uploads) {
    const more = upload.minutes.reduce((sum, { hosts, usage }) => sum + hosts.length + usage.length, 0);
    if (more > appendRowsMax) {
      batches.push({ id: null, uploads: [upload] });
      continue;
    }
    if (rows + more > appendRowsMax) end();
    together.push(upload);
    rows += more;
  }
  end();
  return batches;
}
