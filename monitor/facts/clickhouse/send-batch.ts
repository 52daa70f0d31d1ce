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
import { type FactTable, factTables, type TableRows, type WriteOptions, writeRows } from './write-rows.ts';

/** An upload with what its minutes were given. */
export interface PlacedUpload {
  upload: FactUpload;
  minutes: readonly OriginMinute[];
}

interface BatchInsert {
  table: FactTable;
  day: number;
  columns: readonly string[];
  body: string[];
}

const dayOf = (minute: number) => Math.floor(minute / daySeconds);

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
  const inserts = new Map<string, BatchInsert>();
  for (const one of uploads) {
    for (const { day, rows } of rowsByDay(one, how)) {
      for (const table of factTables) {
        const { columns, lines } = rows[table];
        if (lines.length === 0) continue;
        const key = `${table} ${day}`;
        const insert = inserts.get(key) ?? { table, day, columns, body: [] };
        inserts.set(key, insert);
        insert.body.push(lines.join(''));
      }
    }
  }
  const send =
    ({ table, day, columns, body }: BatchInsert) =>
    () =>
      engine.insert({ table, columns }, body.join(''), batchToken(batchId, table, day));
  const all = [...inserts.values()];
  await runSeveral(all.filter(({ table }) => table !== lastTable).map(send));
  await runSeveral(all.filter(({ table }) => table === lastTable).map(send));
}

/** Sends what did not arrive of an upload that was sent in a batch before. */
export async function sendRest(
  { engine, arrivals }: { engine: Engine; arrivals: Arrivals },
  batchId: string,
  one: PlacedUpload,
  how: WriteOptions,
): Promise<void> {
  for (const { day, rows } of rowsByDay(one, how)) {
    for (const table of factTables) {
      const { columns, lines } = rows[table];
      if (lines.length === 0) continue;
      if (await arrivals.has({ batchId, table, day }, batchToken(batchId, table, day))) continue;
      await engine.insert({ table, columns }, lines.join(''), tokenOf(table, one.upload, `day ${day}`));
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
    const rows = writeRows(upload, minutes.slice(done, done + length), how);
    done += length;
    for (const table of factTables) {
      const { columns, lines } = rows[table];
      if (lines.length > 0)
        await engine.insert({ table, columns }, lines.join(''), tokenOf(table, upload, part));
    }
  }
}

function rowsByDay({ upload, minutes }: PlacedUpload, how: WriteOptions): { day: number; rows: TableRows }[] {
  const days = Map.groupBy(minutes, ({ minute }) => dayOf(minute.minute));
  return [...days].map(([day, own]) => ({ day, rows: writeRows(upload, own, how) }));
}

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
