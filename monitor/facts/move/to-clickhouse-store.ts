/**
 * Copies a day of a site from PostgreSQL to ClickHouse. PostgreSQL writes rows in ClickHouse's format TabSeparated, so this process only
 * passes bytes on. Addresses are written as their bytes (`\xC0\x00…`), so that columns hold what they compare by.
 */
import { sql } from 'kysely';
import { type Queryable, readLines } from '#service-kit/postgres/index.ts';
import type { Engine } from '../clickhouse/engine-store.ts';
import type { SiteDay } from '../control/engine-use-store.ts';
import { copiedTables, tabbed } from './copied-table-store.ts';

/** Bytes of one insert. */
const pieceBytes = 4 * 1024 * 1024;

export interface ToClickhouse extends SiteDay {
  /** What is older is being removed. */
  fromMinute: number;
  /** Of pairs the same. */
  pairsFrom: number;
  /** Networks of peers of hours from this one on are made of exact pairs. */
  peersFrom: number;
  /** Verdicts in PostgreSQL are as new as this. */
  verdictEpoch: number;
}

/** Throws what `onRows` throws. */
export async function copyToClickhouse(
  { db, engine }: { db: Queryable; engine: Engine },
  of: ToClickhouse,
  onRows: (rows: number) => Promise<void>,
): Promise<void> {
  const bounds = { ...of, toMinute: of.day + 86_400, fromMinute: Math.max(of.day, of.fromMinute) };
  for (const { table, columns, fields, from } of copiedTables(bounds)) {
    let held: Buffer[] = [];
    let bytes = 0;
    const send = async (piece: Buffer) => {
      if (piece.length === 0) return;
      await onRows(countLines(piece));
      await engine.load({ table, columns }, piece);
    };
    await readLines(db, sql`select ${tabbed(fields)} ${from}`, async (piece) => {
      held.push(piece);
      bytes += piece.length;
      if (bytes < pieceBytes) return;
      const all = Buffer.concat(held);
      const end = all.lastIndexOf(10) + 1;
      held = [all.subarray(end)];
      bytes = held[0]!.length;
      await send(all.subarray(0, end));
    });
    await send(Buffer.concat(held));
  }
}

export function countLines(piece: Uint8Array): number {
  let lines = 0;
  for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) lines += 1;
  return lines;
}
