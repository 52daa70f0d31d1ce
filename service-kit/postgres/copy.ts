/**
 * `COPY … FROM STDIN` inside kysely's transactions: rows as PostgreSQL's binary format, several times faster than any
 * INSERT. kysely hides its connection, so the copy travels as an ordinary statement whose only parameter is the rows;
 * `speakCopy` teaches a pool's connection to tell it apart.
 */
import { pipeline } from 'node:stream/promises';
import { CompiledQuery, type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { camelName, type Queryable } from './queryable.ts';

/** Rows on their way into a table: all of them, or as they come. */
class CopyRows {
  readonly bytes: Uint8Array | AsyncIterable<Uint8Array>;
  constructor(bytes: CopyRows['bytes']) {
    this.bytes = bytes;
  }
}

/** Takes rows on their way out, piece by piece. */
class CopyTaker {
  readonly take: (piece: Buffer) => Promise<void>;
  constructor(take: CopyTaker['take']) {
    this.take = take;
  }
}

/** Appends rows made by `RowWriter` to these columns of a table. The names go into the statement as they are. */
export async function copyRows(db: Queryable, table: string, columns: readonly string[], rows: Uint8Array) {
  const text = `copy ${table} (${columns.join(', ')}) from stdin (format binary)`;
  await db.executeQuery(CompiledQuery.raw(text, [new CopyRows(rows)]));
}

/** Appends rows in PostgreSQL's text format, as they come. The names go into the statement as they are. */
export async function copyText(
  db: Queryable,
  table: string,
  columns: readonly string[],
  rows: AsyncIterable<Uint8Array>,
): Promise<void> {
  const text = `copy ${table} (${columns.join(', ')}) from stdin`;
  await db.executeQuery(CompiledQuery.raw(text, [new CopyRows(rows)]));
}

/**
 * Lines of a query whose only column is text, each with its end, in pieces that need not end with a line; the next piece is read when
 * `take` is done. The query must be without parameters (`sql.lit`), and its lines without control characters other than tabs.
 */
export async function readLines(
  db: Queryable,
  query: RawBuilder<unknown>,
  take: (piece: Buffer) => Promise<void>,
): Promise<void> {
  const { sql, parameters } = query.compile(db);
  if (parameters.length > 0) throw new Error('COPY takes no parameters.');
  // CSV leaves a value as it is that holds neither of these two characters nor an end of a line.
  const text = `copy (${sql}) to stdout (format csv, delimiter e'\\x02', quote e'\\x01')`;
  await db.executeQuery(CompiledQuery.raw(text, [new CopyTaker(take)]));
}

/** Lets this connection take statements of `copyRows`, `copyText` and `readLines`. */
export function speakCopy(client: pg.PoolClient): void {
  const query = client.query.bind(client) as (...args: unknown[]) => unknown;
  const speaking = (...args: unknown[]): unknown => {
    const [text, values] = args;
    const given = Array.isArray(values) ? values[0] : undefined;
    if (given instanceof CopyRows) return copyIn(query, text as string, given);
    if (given instanceof CopyTaker) return copyOut(query, text as string, given);
    return query(...args);
  };
  client.query = speaking as typeof client.query;
}

type Query = (...args: unknown[]) => unknown;

async function copyIn(query: Query, text: string, { bytes }: CopyRows) {
  const stream = copyFrom(text);
  query(stream);
  await pipeline(bytes instanceof Uint8Array ? [bytes] : bytes, stream);
  return { command: 'COPY', rowCount: stream.rowCount, rows: [] };
}

async function copyOut(query: Query, text: string, { take }: CopyTaker) {
  const stream = copyTo(text);
  query(stream);
  let failure: { error: unknown } | null = null;
  await pipeline(stream, async (pieces: AsyncIterable<Buffer>) => {
    for await (const piece of pieces) {
      if (failure) continue;
      // The rest is read all the same: a connection that is left in the middle of a copy is of no use any more.
      await take(piece).catch((error: unknown) => {
        failure = { error };
      });
    }
  });
  if (failure) throw (failure as { error: unknown }).error;
  return { command: 'COPY', rowCount: stream.rowCount, rows: [] };
}

// Rows as one list for each of their columns, for statements that answer thousands of rows: PostgreSQL writes them and the
// driver reads them in a third of the time that as many messages take.

/** By the name of the column; null of no rows. */
export type Columns = Readonly<Record<string, readonly unknown[] | null>>;

/** An expression: these columns of a statement, in its order. They are numbers, text and booleans: JSON has no others. */
export const asColumns = (statement: RawBuilder<unknown>, names: readonly string[]): RawBuilder<Columns> =>
  sql`(select json_build_object(${sql.join(
    names.map((name) => sql`${sql.lit(name)}, json_agg(${sql.ref(name)})`),
  )}) from (${statement}) as listed)`;

/** The rows again, as the connection names them. Throws at a number that a double does not hold, which must not be rounded silently. */
export function fromColumns<Row>(columns: Columns): Row[] {
  const rows: Record<string, unknown>[] = [];
  for (const [column, values] of Object.entries(columns)) {
    const name = camelName(column);
    for (let place = 0; place < (values?.length ?? 0); place += 1) {
      const value = values![place];
      if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER)
        throw new Error(`${name} ${value} exceeds 2^53`);
      const row = rows[place];
      if (row === undefined) rows.push({ [name]: value });
      else row[name] = value;
    }
  }
  return rows as Row[];
}
