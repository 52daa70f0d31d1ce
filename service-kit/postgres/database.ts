/** A program's database: its server (embedded or by URL), its migrations, its pool, and kysely over that pool. */

import { createHash } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CompiledQuery, Kysely, PostgresDialect, type PostgresPool } from 'kysely';
import pg from 'pg';
import { CodedError, describeError, hasCode } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { speakCopy } from './copy.ts';
import { checkPlace, type EmbeddedUse } from './database-place.ts';
import { createEmbeddedPostgres, type EmbeddedPostgres } from './embedded.ts';
import { prepareStatements } from './prepare.ts';
import { camelName, type Queryable } from './queryable.ts';

const kitMigrations = fileURLToPath(new URL('../migrations', import.meta.url));

export interface DatabaseOptions {
  program: string;
  /** Name of the setting that holds the URL, for error messages. */
  urlSetting: string;
  /** null: the embedded server. */
  url: string | null;
  /** The program's own folder in the data directory; the embedded server lives below it. */
  programDir: string;
  /** Folder of the program's migrations. */
  migrations: string;
  connectionsMax?: number;
  /** A statement that waits longer than this for a lock fails; without it, it waits for as long as the lock is held. */
  lockTimeoutMs?: number;
  /** Another URL for connections that only read, as a role that may do nothing else; the same URL when absent. */
  readerUrl?: string | null;
  /** `own` when absent. */
  embedded?: EmbeddedUse;
  /** Connections prepare their statements, true when absent; false behind a pooler that hands one to several clients. */
  prepares?: boolean;
  reporter: Reporter;
}

export type Database = ReturnType<typeof createDatabase>;

/** Names of the migrations that this program brings and its database has not had yet. */
export async function listMissingMigrations(
  database: Pick<Database, 'reader'>,
  migrations: string,
): Promise<string[]> {
  const { rows } = await database.reader.executeQuery<{ name: string }>(
    CompiledQuery.raw('select name from schema_migrations'),
  );
  return findMissingMigrations(rows, [kitMigrations, migrations]);
}

// Counters and ids fit a double; anything beyond 2^53 is a defect that must not be rounded silently.
pg.types.setTypeParser(pg.types.builtins.INT8, (text) => {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new Error(`int8 value ${text} exceeds 2^53`);
  return value;
});

/** Longer than any statement of ours takes: what is silent for so long hangs on a connection that is only half there. */
const usualAnswerMs = 120_000;
const readerConnections = 4;

/** A connection's prepared statements take memory of the server, and a text that was asked once may never come again. */
const connectionSeconds = 1_800;

/**
 * A client whose connection is cut when a statement is not answered in time, or when nothing of a COPY has moved for as long. TCP
 * alone would wait a quarter of an hour for a vanished peer, and the waiting caller holds its pool connection and its open
 * transaction meanwhile.
 */
function createTimeoutClient(answerMs: number): typeof pg.Client {
  return class TimeoutClient extends pg.Client {
    // biome-ignore lint/suspicious/noExplicitAny: the overloads of the driver.
    override query(...args: any[]): any {
      const { stream } = (this as unknown as { connection: { stream: Socket } }).connection;
      const moved = () => stream.bytesRead + stream.bytesWritten;
      let isCopy = false;
      let before = moved();
      const timer = setInterval(() => {
        const now = moved();
        if (isCopy && now !== before) before = now;
        else stream.destroy(new Error(`Connection terminated: no answer for ${answerMs / 1000} s`));
      }, answerMs);
      timer.unref();
      const done = () => clearInterval(timer);
      const last = args.at(-1);
      // The pool's own `query` gives a callback.
      if (typeof last === 'function') {
        args[args.length - 1] = (...outcome: unknown[]) => {
          done();
          last(...outcome);
        };
      }
      // biome-ignore lint/suspicious/noExplicitAny: as above.
      const result = (super.query as any)(...args);
      if (result instanceof Promise) result.then(done, done);
      else if (typeof result?.once === 'function') {
        // A COPY is a stream that ends when all of it has moved.
        isCopy = true;
        result.once('close', done);
      } else if (typeof last !== 'function') done();
      return result;
    }
  };
}

export interface PoolOptions {
  isReadOnly?: boolean;
  answerMs?: number;
  lockTimeoutMs?: number | undefined;
  /**
   * Statements are prepared by the connections. `always`: each is planned once, for all values; for tests, whose tables are so
   * small that planning costs more than all else.
   */
  prepares?: boolean | 'always';
}

/** A pool that does not bring the process down when the server restarts, with kysely over it. */
export function createPool(
  connectionString: string,
  max: number,
  options: PoolOptions = {},
): { pool: pg.Pool; db: Queryable } {
  const { prepares = true } = options;
  const settings = [
    ...(prepares === 'always' ? ['-c plan_cache_mode=force_generic_plan'] : []),
    ...(options.isReadOnly ? ['-c default_transaction_read_only=on'] : []),
    ...(options.lockTimeoutMs === undefined ? [] : [`-c lock_timeout=${options.lockTimeoutMs}`]),
  ];
  const pool = new pg.Pool({
    connectionString,
    max,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 30_000,
    maxLifetimeSeconds: connectionSeconds,
    Client: createTimeoutClient(options.answerMs ?? usualAnswerMs),
    ...(settings.length === 0 ? {} : { options: settings.join(' ') }),
  });
  pool.on('error', () => {});
  // The pool listens to idle clients alone. Without this one a connection that is cut inside a transaction would end the
  // process instead of failing the query that waits on it.
  pool.on('connect', (client) => {
    client.on('error', () => {});
    if (prepares) prepareStatements(client, prepares === 'always');
    speakCopy(client);
    const { connection } = client as unknown as { connection: EventEmitter };
    connection.prependListener('rowDescription', ({ fields }: { fields: { name: string }[] }) => {
      if (heldByKysely.has(client)) for (const field of fields) field.name = camelName(field.name);
    });
  });
  return { pool, db: new Kysely({ dialect: new PostgresDialect({ pool: withCamelNames(pool) }) }) };
}

/** Connections that kysely holds. */
const heldByKysely = new WeakSet<pg.PoolClient>();

/**
 * A pool of `createPool` for kysely: rows have their columns' names in camel case, but values of JSON keep their keys. The driver makes
 * all rows of an answer from the names that come before them, so it costs nothing a row. Who asks the pool itself gets
 * PostgreSQL's names.
 */
export function withCamelNames(pool: pg.Pool): PostgresPool {
  return {
    async connect() {
      const client = await pool.connect();
      heldByKysely.add(client);
      const release = client.release;
      client.release = (error) => {
        heldByKysely.delete(client);
        release(error);
      };
      return client;
    },
    end: () => pool.end(),
    options: pool.options,
  };
}

export function createDatabase(options: DatabaseOptions) {
  let embedded: EmbeddedPostgres | null = null;
  let open: { pool: pg.Pool; db: Queryable; reader: Queryable } | null = null;
  const opened = () => {
    if (!open) throw new Error('database used before start');
    return open;
  };
  return {
    name: 'database',
    /** Usable between `start` and `stop`. */
    get db(): Queryable {
      return opened().db;
    },
    get pool(): pg.Pool {
      return opened().pool;
    },
    /**
     * Connections of their own that can only read: what is asked here neither writes by accident nor waits for a connection
     * that writers hold.
     */
    get reader(): Queryable {
      return opened().reader;
    },
    async start() {
      let url = options.url;
      await checkPlace(options);
      if (url === null) {
        embedded = createEmbeddedPostgres({
          dir: `${options.programDir}/postgres`,
          databaseName: options.program,
          urlSetting: options.urlSetting,
          reporter: options.reporter,
        });
        url = embedded.url;
        try {
          await embedded.start();
        } catch (error) {
          embedded = null;
          if ((options.embedded ?? 'own') === 'own' || !hasCode(error, 'postgres.in_use')) throw error;
        }
      }
      try {
        await prepare(url, options);
        await embedded?.protectAudit();
      } catch (error) {
        await embedded?.stop();
        throw error;
      }
      const { lockTimeoutMs, prepares = true } = options;
      const readerUrl = options.readerUrl ?? url;
      const { db: reader } = createPool(readerUrl, readerConnections, { isReadOnly: true, prepares });
      open = { ...createPool(url, options.connectionsMax ?? 20, { lockTimeoutMs, prepares }), reader };
    },
    async stop() {
      await Promise.all([open?.db.destroy(), open?.reader.destroy()]);
      open = null;
      await embedded?.stop();
      embedded = null;
    },
  };
}

/** Checks the server, then applies the migrations over one connection. */
async function prepare(url: string, options: DatabaseOptions): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  client.on('error', () => {});
  try {
    await client.connect();
  } catch (error) {
    throw new CodedError(
      'database.unreachable',
      `The database of ${options.urlSetting} does not answer: ${describeError(error)}.`,
      {},
      error,
    );
  }
  try {
    await checkServer(client, options.urlSetting);
    const applied = await applyMigrations(client, [kitMigrations, options.migrations]);
    if (applied.length > 0) options.reporter.info('migrations applied', { count: applied.length });
    if (options.url !== null) await checkAudit(client, options);
  } finally {
    await client.end();
  }
}

/** Says where the role that the program works as can change the audit trail: the operator's PostgreSQL is theirs to set up. */
async function checkAudit(client: pg.Client, { reporter }: DatabaseOptions): Promise<void> {
  const { rows } = await client.query<{ owns: boolean }>(
    "select pg_has_role(relowner, 'usage') as owns from pg_class where oid = 'audit_entries'::regclass",
  );
  if (rows[0]?.owns)
    reporter.warn("the program's own role can change and delete the audit trail", {
      advice: 'run packaging/postgres/audit.sql as the administrator of the database',
    });
}

/** Acknowledged must mean durable, so a server with the safety off is refused. */
async function checkServer(client: pg.Client, urlSetting: string): Promise<void> {
  const { rows } = await client.query<{ version: number; fsync: string; commit: string; pages: string }>(
    `select current_setting('server_version_num')::int as version, current_setting('fsync') as fsync,
            current_setting('synchronous_commit') as commit, current_setting('full_page_writes') as pages`,
  );
  const server = rows[0]!;
  if (server.version < 150_000) {
    throw new CodedError(
      'database.too_old',
      `${urlSetting} is PostgreSQL ${server.version}; 15 or newer is needed.`,
    );
  }
  if (server.fsync !== 'on' || server.commit === 'off' || server.pages !== 'on') {
    throw new CodedError(
      'database.not_durable',
      `${urlSetting} would lose acknowledged data: set fsync, synchronous_commit and full_page_writes to on.`,
    );
  }
}

// Plain SQL migrations, `NNNN-verb-noun.sql`, each applied once in a transaction of its own, in the order of their names.
//
// Applied files never change: their checksum is kept and compared. Two programs that start at once are safe: an
// advisory lock lets one of them do it.

const lockKey = 7_318_001;

interface Migration {
  name: string;
  text: string;
  checksum: string;
}

/** Reads the folders' migrations in order; a folder's name is part of a migration's name. */
export async function readMigrations(folders: readonly string[]): Promise<Migration[]> {
  const migrations: Migration[] = [];
  for (const folder of folders) {
    const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).sort();
    for (const file of files) {
      const text = await readFile(join(folder, file), 'utf8');
      const owner = basename(join(folder, '..'));
      migrations.push({
        name: `${owner}/${file}`,
        text,
        checksum: createHash('sha256').update(text).digest('hex'),
      });
    }
  }
  return migrations;
}

/**
 * Applies what is missing; returns the names applied. Throws `migrations.changed` when an applied file was edited, and
 * `migrations.newer` when a newer version of the program has brought the database further.
 */
export async function applyMigrations(client: pg.ClientBase, folders: readonly string[]): Promise<string[]> {
  const migrations = await readMigrations(folders);
  await client.query('select pg_advisory_lock($1)', [lockKey]);
  try {
    await client.query(`create table if not exists schema_migrations (
      name text primary key, checksum text not null, applied_at timestamptz not null default now())`);
    const { rows } = await client.query<{ name: string; checksum: string }>(
      'select name, checksum from schema_migrations',
    );
    const applied = new Map(rows.map((row) => [row.name, row.checksum]));
    refuseNewer(migrations, [...applied.keys()]);
    const names: string[] = [];
    for (const migration of migrations) {
      const before = applied.get(migration.name);
      if (before !== undefined && before !== migration.checksum) {
        throw new CodedError(
          'migrations.changed',
          `Migration ${migration.name} was changed after it had been applied. Restore the file, and put the change into a new one.`,
        );
      }
      if (before === undefined) {
        await applyOne(client, migration);
        names.push(migration.name);
      }
    }
    return names;
  } finally {
    await client.query('select pg_advisory_unlock($1)', [lockKey]);
  }
}

/** A program that does not know the tables would write into them what the newer one can't read. */
function refuseNewer(migrations: readonly Migration[], applied: readonly string[]): void {
  const ownerOf = (name: string) => name.slice(0, name.indexOf('/'));
  const known = new Set(migrations.map(({ name }) => name));
  const owners = new Set([...known].map(ownerOf));
  const unknown = applied.filter((name) => owners.has(ownerOf(name)) && !known.has(name)).sort();
  if (unknown.length === 0) return;
  const last = unknown.at(-1)!;
  const own = [...known].filter((name) => ownerOf(name) === ownerOf(last)).at(-1);
  throw new CodedError(
    'migrations.newer',
    `The database is of a newer version of svc (${last}) than this program (${own}). Start the newer version, or restore a backup from before the upgrade (docs/operating/upgrade.md).`,
  );
}

async function applyOne(client: pg.ClientBase, migration: Migration): Promise<void> {
  await client.query('begin');
  try {
    await client.query(migration.text);
    await client.query('insert into schema_migrations (name, checksum) values ($1, $2)', [
      migration.name,
      migration.checksum,
    ]);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw new CodedError(
      'migrations.failed',
      `Migration ${migration.name} failed: ${(error as Error).message}`,
      {},
      error,
    );
  }
}

/** Names of migrations that this program has and its database has not, in order. */
async function findMissingMigrations(applied: readonly { name: string }[], folders: readonly string[]) {
  const known = new Set(applied.map((row) => row.name));
  return (await readMigrations(folders)).map(({ name }) => name).filter((name) => !known.has(name));
}
