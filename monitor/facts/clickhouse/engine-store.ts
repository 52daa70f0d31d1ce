/**
 * Statements sent to ClickHouse, each with a limit of time, and what their failures mean.
 *
 * Three kinds of failures: a statement took too long (`facts.too_slow`); the engine could not be used at all, is full, read-only
 * or overloaded (`facts.unavailable`, nothing is wrong with what was sent and it may be sent again); everything else.
 */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ClickHouseClient } from '@clickhouse/client';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { FactEngineState } from '../contract/fact-store.ts';
import { ch, type Fragment, plain, text, toStatement } from './statement.ts';

export type FactClient = Pick<ClickHouseClient, 'query' | 'command' | 'exec' | 'close'>;

export type Engine = ReturnType<typeof createEngine>;

/** A read of three months of a large site takes some seconds; what takes longer than this is stopped. */
const readMsDefault = 60_000;
/** Shorter than the lease of the inbox, under which uploads are applied. */
const insertSeconds = 10;

/** Longest insert of a move, and longest read of a day. */
export const loadSeconds = 30;
const readSeconds = 3600;

/** ClickHouse's codes that say something of the statement or its data; all others are about the server. */
const ownFaults = new Set([
  ...['6', '26', '27', '33', '36', '38', '41', '42', '43', '44', '46', '47', '53', '62', '69', '70', '72'],
  ...['117', '131', '349', '386', '456', '457'],
]);
const timeoutExceeded = new Set(['159', '160', '241']);

export function createEngine(client: FactClient) {
  return {
    /** Of the server, such as `25.8.2`. Asked without the settings of other statements, which an old server does not know. */
    async version(): Promise<string> {
      return await meaning(async () => {
        const answer = await client.query({ query: 'select version() as version', format: 'JSONEachRow' });
        const [server] = await answer.json<{ version: string }>();
        return server!.version;
      });
    },
    /** Rows of a statement, as objects. Throws `facts.too_slow` after `limitMs`. */
    async rows<T>(statement: Fragment, limitMs: number = readMsDefault): Promise<T[]> {
      const { query, parameters } = toStatement(statement);
      return await meaning(async () => {
        const answer = await client.query({
          query: `${query}\nsettings max_execution_time = ${limitMs / 1000}, timeout_overflow_mode = 'throw',
            output_format_json_quote_64bit_integers = 0, join_use_nulls = 0, enable_analyzer = 1,
            prefer_column_name_to_alias = 1`,
          format: 'JSONEachRow',
          query_params: parameters,
        });
        return await answer.json<T>();
      }, limitMs);
    },
    /** A statement without an answer. */
    async run(statement: Fragment) {
      const { query, parameters } = toStatement(statement);
      await meaning(async () => await client.command({ query, query_params: parameters }));
    },
    /** Inserts a block in the format Native. What was inserted before under this token is left alone. The token is of letters and digits. */
    async insert(
      { table, columns }: { table: string; columns: readonly string[] },
      block: Buffer,
      token: string,
    ) {
      if (!/^[0-9a-z]+$/.test(token)) throw new Error('A token consists of letters and digits.');
      await meaning(async () => {
        const { stream } = await client.exec({
          query: `insert into ${table} (${columns.join(', ')}) settings insert_deduplicate = 1, async_insert = 0,
            insert_deduplication_token = '${token}', max_execution_time = ${insertSeconds},
            input_format_native_allow_types_conversion = 1 format Native`,
          values: Readable.from([block]),
          abort_signal: AbortSignal.timeout(insertSeconds * 1000),
        });
        stream.destroy();
      });
    },
    /** Inserts rows in TabSeparated, also where the same were inserted before. */
    async load({ table, columns }: { table: string; columns: readonly string[] }, rows: Buffer) {
      await meaning(async () => {
        const { stream } = await client.exec({
          // A token of its own: without one the same rows are left out after they were deleted, also with insert_deduplicate = 0.
          query: `insert into ${table} (${columns.join(', ')}) settings async_insert = 0,
            insert_deduplication_token = '${randomUUID()}', max_execution_time = ${loadSeconds} format TabSeparated`,
          values: Readable.from([rows]),
          abort_signal: AbortSignal.timeout(loadSeconds * 1000),
        });
        stream.destroy();
      });
    },
    /** Rows of a statement in TabSeparated, in pieces that need not end with a row. */
    async read(statement: Fragment): Promise<AsyncIterable<Buffer>> {
      const { query, parameters } = toStatement(statement);
      return await meaning(async () => {
        const { stream } = await client.exec({
          query: `${query}\nsettings max_execution_time = ${readSeconds}, enable_analyzer = 1,
            prefer_column_name_to_alias = 1 format TabSeparated`,
          query_params: parameters,
        });
        return stream;
      });
    },
  };
}

/** An exception of the server: it has a number, and a name. */
export interface ServerError extends Error {
  code: string;
  type?: string;
}

/** By its form, since the client and the engine of tests each have a class of their own. */
export const isServerError = (error: unknown): error is ServerError =>
  error instanceof Error && /^[0-9]+$/.test(String((error as Partial<ServerError>).code ?? ''));

/** Servers before 20.1 write their errors in another form, which the client does not read. */
const oldForm = /^Code: (\d+), e\.displayText\(\)/;

function withCode(error: unknown): unknown {
  const code = error instanceof Error ? oldForm.exec(error.message)?.[1] : undefined;
  return code === undefined || isServerError(error) ? error : Object.assign(error as Error, { code });
}

async function meaning<T>(work: () => Promise<T>, limitMs = 0): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const error = withCode(thrown);
    if (!isServerError(error)) throw unavailable(error);
    if (limitMs > 0 && timeoutExceeded.has(error.code)) throw tooSlow(limitMs, error);
    if (ownFaults.has(error.code)) throw error;
    throw unavailable(error);
  }
}

function tooSlow(limitMs: number, cause: unknown): CodedError {
  const message = `This took longer than ${limitMs / 1000} seconds, or more memory than there is, and was stopped. Choose a shorter range, add a filter by server, address or application, or leave out a shorter step than the automatic one.`;
  return new CodedError('facts.too_slow', message, {}, cause);
}

function unavailable(cause: unknown): CodedError {
  const why = isServerError(cause) ? ` (${cause.type ?? cause.code})` : '';
  const message = `ClickHouse, which holds the traffic facts, does not answer or takes nothing${why}.`;
  return new CodedError('facts.unavailable', message, {}, cause);
}

/** Null: they have none yet. */
export async function readStoreId(engine: Engine): Promise<string | null> {
  const [row] = await engine.rows<{ id: string }>(
    ch`select toString(min(id)) as id from store_identity having count() > 0`,
  );
  return row?.id ?? null;
}

/** Gives the tables a number; of an earlier installation they had another one. */
export async function writeStoreId(engine: Engine, id: string): Promise<void> {
  await engine.run(plain('alter table store_identity delete where 1 settings mutations_sync = 1'));
  await engine.run(ch`insert into store_identity (id) select toUUID(${text(id)})`);
}

export async function hasClickhouseFacts(engine: Engine): Promise<boolean> {
  const [row] = await engine.rows<{ has: number }>(ch`
    select (select count() from (select 1 from capture_minutes where site_id > 0 limit 1)) + (select count() from (select 1 from host_minutes where site_id > 0 limit 1))
      + (select count() from (select 1 from application_facts where site_id > 0 limit 1)) as has`);
  return row!.has > 0;
}

/** A health page waits no longer for it. */
const limitMs = 2_000;
/** ClickHouse slows inserts down at 1,000 parts of a partition and refuses them at 3,000. */
const partsMax = 500;
/** A tenth of the disk, which merges need as room. */
const freeShareMin = 0.1;

/** How ClickHouse stands, for the health page. */
export async function readEngineState(engine: Engine): Promise<FactEngineState> {
  const begunMs = performance.now();
  try {
    const [parts] = await engine.rows<{ parts: number; most: number; rows: number; bytes: number }>(
      ch`select toFloat64(sum(several)) as parts, toFloat64(max(several)) as most, toFloat64(sum(all_rows)) as rows,
          toFloat64(sum(all_bytes)) as bytes
        from (select count() as several, sum(rows) as all_rows, sum(bytes_on_disk) as all_bytes from system.parts
          where active and database = currentDatabase() group by table, partition)`,
      limitMs,
    );
    const answerMs = performance.now() - begunMs;
    const [disk] = await engine.rows<{ free: number; total: number }>(
      ch`select toFloat64(min(free_space)) as free, toFloat64(min(total_space)) as total from system.disks where total_space > 0`,
      limitMs,
    );
    const { most, ...counted } = parts!;
    const free = disk?.free ?? null;
    const isFull = disk !== undefined && disk.total > 0 && disk.free < disk.total * freeShareMin;
    const problem =
      most > partsMax
        ? `ClickHouse merges facts too slowly: a table has ${most} parts of one day.`
        : isFull
          ? 'The disk of ClickHouse is nearly full.'
          : null;
    return { name: 'ClickHouse', problem, answerMs, ...counted, freeBytes: free };
  } catch (error) {
    const problem = `Traffic facts can't be read: ${describeError(error)}`;
    return {
      name: 'ClickHouse',
      problem,
      answerMs: null,
      parts: null,
      rows: null,
      bytes: null,
      freeBytes: null,
    };
  }
}
