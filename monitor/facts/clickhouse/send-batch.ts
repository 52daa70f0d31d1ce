/**
 * Inserts of uploads, and what became of an insert whose answer never came.
 *
 * ClickHouse leaves out an insert with a token that it has seen in the same table and day. So an upload that is sent by itself has
 * tokens of its own, and what became of a batch is asked of its token (`arrival-store.ts`).
 */
import { createHash } from 'node:crypto';
import type { FactUpload } from '../contract/facts.ts';
import type { OriginMinute } from '../control/capture-store.ts';
import { divideUploads } from '../control/divide-uploads.ts';
import { type Arrivals, daySeconds } from './arrival-store.ts';
import type { Engine } from './engine-store.ts';
import {
  createTableRows,
  type FactTable,
  factTables,
  type TableRows,
  type WriteOptions,
  writeRows,
} from './write-rows.ts';

/** An upload with what its minutes were given. */
export interface PlacedUpload {
  upload: FactUpload;
  minutes: readonly OriginMinute[];
}

/** Inserts that are on their way at once: a server works on several, and each waits for its disk. */
const concurrency = 4;

/** The last table: a minute counts as collected when all that was collected of it is there. */
const lastTable: FactTable = factTables.at(-1)!;

/** Sends uploads together under the tokens of their batch, which was never sent before. */
export async function sendBatch(
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
export async function sendRest(
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
export async function sendAlone(
  engine: Engine,
  { upload, minutes }: PlacedUpload,
  how: WriteOptions,
): Promise<void> {
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
