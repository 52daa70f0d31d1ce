/**
 * Appending uploads.
 *
 * Uploads are sent together, one insert for each table and day. Which ones is noted in PostgreSQL before anything is sent, and
 * the note goes in the caller's transaction (`control/sent-store.ts`): one that is found when an upload comes again says that it may
 * have arrived. What did is settled by the insert's token (`arrival-store.ts`).
 */
import { createHash, randomUUID } from 'node:crypto';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { NameApplication } from '../contract/collect-facts.ts';
import type { FactUpload } from '../contract/facts.ts';
import { keepAwake } from '../control/awake-store.ts';
import type { OriginMinute } from '../control/capture-store.ts';
import { placeMinutes } from '../control/capture-store.ts';
import { appendRowsMax, divideUploads } from '../control/divide-uploads.ts';
import { insertGaps } from '../control/gap-store.ts';
import {
  claimTokens,
  findSent,
  forgetSent,
  keyOfToken,
  noteSent,
  type SentBatch,
} from '../control/token-store.ts';
import { trimUnobservedGaps } from '../control/unobserved-gap-store.ts';
import { readVerdictEpoch } from '../control/verdict-span-store.ts';
import { type Arrivals, daySeconds } from './arrival-store.ts';
import type { Engine } from './engine-store.ts';
import { findKnown } from './known-store.ts';
import {
  createTableRows,
  type FactTable,
  factTables,
  type TableRows,
  type WriteOptions,
  writeRows,
} from './write-rows.ts';

interface AppendDeps {
  engine: Engine;
  arrivals: Arrivals;
  db: () => Queryable;
  nameApplication: NameApplication;
}

export async function appendUploads(deps: AppendDeps, trx: Queryable, uploads: readonly FactUpload[]) {
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

// Inserts of uploads, and what became of an insert whose answer never came.
//
// ClickHouse leaves out an insert with a token that it has seen in the same table and day. So an upload that is sent by itself has
// tokens of its own, and what became of a batch is asked of its token (`arrival-store.ts`).

/** An upload with what its minutes were given. */
interface PlacedUpload {
  upload: FactUpload;
  minutes: readonly OriginMinute[];
}

/** Inserts that are on their way at once: a server works on several, and each waits for its disk. */
const concurrency = 4;

/** The last table: a minute counts as collected when all that was collected of it is there. */
const lastTable: FactTable = factTables.at(-1)!;

/** Sends uploads together under the tokens of their batch, which was never sent before. */
async function sendBatch(
  engine: Engine,
  batchId: string,
  uploads: readonly PlacedUpload[],
  how: WriteOptions,
): Promise<void> {
  const days = new Map<number, TableRows>();
  for (const { upload, minutes } of uploads) {
    for (const [day, own] of byDay(minutes)) {
      const rows = days.get(day) ?? createTableRows();
      days.set(day, rows);
      writeRows(rows, upload, own, how);
    }
  }
  const insertsOf = (tables: readonly FactTable[]) =>
    [...days].flatMap(([day, rows]) =>
      tables
        .filter((table) => rows[table].count > 0)
        .map((table) => () => insert(engine, rows, table, batchToken(batchId, table, day))),
    );
  await runSeveral(insertsOf(factTables.filter((table) => table !== lastTable)));
  await runSeveral(insertsOf([lastTable]));
}

/** Sends what did not arrive of an upload that was sent in a batch before. */
async function sendRest(
  { engine, arrivals }: { engine: Engine; arrivals: Arrivals },
  batchId: string,
  { upload, minutes }: PlacedUpload,
  how: WriteOptions,
): Promise<void> {
  for (const [day, own] of byDay(minutes)) {
    const rows = createTableRows();
    writeRows(rows, upload, own, how);
    for (const table of factTables) {
      if (rows[table].count === 0) continue;
      if (await arrivals.has({ batchId, table, day }, batchToken(batchId, table, day))) continue;
      await insert(engine, rows, table, tokenOf(table, upload, `day ${day}`));
    }
  }
}

/** Sends an upload by itself, in parts that depend on it alone, so that a repeat has the same. */
async function sendAlone(engine: Engine, { upload, minutes }: PlacedUpload, how: WriteOptions) {
  let done = 0;
  for (const [part, [piece]] of divideUploads([upload]).entries()) {
    const { length } = piece!.minutes;
    const rows = createTableRows();
    writeRows(rows, upload, minutes.slice(done, done + length), how);
    done += length;
    for (const table of factTables)
      if (rows[table].count > 0) await insert(engine, rows, table, tokenOf(table, upload, part));
  }
}

const byDay = (minutes: readonly OriginMinute[]) =>
  Map.groupBy(minutes, ({ minute }) => Math.floor(minute.minute / daySeconds));

const insert = (engine: Engine, rows: TableRows, table: FactTable, token: string): Promise<void> =>
  engine.insert({ table, columns: rows[table].names }, rows[table].encode(), token);

const nameOf = (parts: readonly (string | number)[]) =>
  createHash('sha256').update(parts.join(' ')).digest('hex');

const batchToken = (batchId: string, table: FactTable, day: number) => nameOf(['batch', batchId, table, day]);

const tokenOf = (table: FactTable, { origin, token }: FactUpload, part: number | string) =>
  nameOf([table, origin.sensorId, token.spoolId.toLowerCase(), token.sequence, part]);

/** Ends when all have ended, so that nothing is on its way any more when the transaction does; throws the first failure. */
async function runSeveral(work: readonly (() => Promise<void>)[]): Promise<void> {
  const waiting = work.values();
  let failure: { error: unknown } | null = null;
  const runner = async () => {
    for (const next of waiting) {
      if (failure) return;
      try {
        await next();
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, runner));
  if (failure) throw (failure as { error: unknown }).error;
}
