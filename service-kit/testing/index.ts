/**
 * Databases for tests: one real PostgreSQL server for all test files, and a database of its own for each, copied from
 * a template that holds the program's migrations.
 *
 * The server is the embedded one, kept under `.cache/` or in the folder in memory that `SVC_TEST_MEMORY_DIR` names, and
 * left running between test files; `tools/test.ts` stops it.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { silentReporter } from '#common/reporter/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import { startDetachedServer } from '#service-kit/postgres/detached.ts';
import { applyMigrations, readMigrations } from '#service-kit/postgres/migrations.ts';
import type { Queryable } from '#service-kit/postgres/queryable.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const kitMigrations = fileURLToPath(new URL('../migrations', import.meta.url));

/** The folder of the tests' server. */
export function testServerDir(): string {
  const inMemory = process.env.SVC_TEST_MEMORY_DIR;
  return inMemory ? `${inMemory}/postgres` : `${root}.cache/test-postgres`;
}

export interface TestDatabase extends AsyncDisposable {
  readonly url: string;
  readonly pool: pg.Pool;
  readonly db: Queryable;
  /** Connections that can only read. */
  readonly reader: Queryable;
  readonly readerPool: pg.Pool;
  /** Drops the database; also what `await using` calls. */
  drop(): Promise<void>;
}

/**
 * A fresh database with the migrations of this folder (`operations`, `monitor`, or `service-kit` for the kit's own alone).
 * `kept` names a database that `keepDatabase` has left behind: this one is a copy of it where there is one.
 */
export async function createTestDatabase(program: string, kept?: string): Promise<TestDatabase> {
  const { name: template, migrations } = await templateOf(program);
  const name = `svc_test_${program.replace('-', '_')}_${process.pid}_${randomBytes(4).toString('hex')}`;
  const serverUrl = await testServerUrl();
  const urlOf = (database: string) => serverUrl.replace('/postgres?', `/${database}?`);

  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  try {
    await admin.query('select pg_advisory_lock(7318002)');
    const { rowCount } = await admin.query('select 1 from pg_database where datname = $1', [template]);
    if (rowCount === 0) await makeTemplate(admin, template, urlOf(`${template}_new`), migrations);
    const found = kept === undefined ? null : await findKept(admin, template, kept);
    // A copy of the files takes half of what it takes to log every page of them.
    await admin.query(`create database ${name} template ${found ?? template} strategy file_copy`);
  } finally {
    await admin.end();
  }

  // Each connection is a process that reads the catalogue and plans its statements anew.
  const { pool, db } = createPool(urlOf(name), 6, { prepares: 'always' });
  const { db: reader, pool: readerPool } = createPool(urlOf(name), 2, {
    isReadOnly: true,
    prepares: 'always',
  });
  const drop = async () => {
    await Promise.all([db.destroy(), reader.destroy()]);
    const client = new pg.Client({ connectionString: serverUrl });
    await client.connect();
    await client.query(`drop database if exists ${name} with (force)`);
    await client.end();
  };
  return { url: urlOf(name), pool, db, reader, readerPool, drop, [Symbol.asyncDispose]: drop };
}

interface Template {
  name: string;
  migrations: string[];
}

/** Named after the migrations as well: a database of earlier ones is of no use. */
const keptName = (template: string, kept: string) => `${template}_${kept}`;

async function findKept(admin: pg.Client, template: string, kept: string): Promise<string | null> {
  const name = keptName(template, kept);
  const { rowCount } = await admin.query('select 1 from pg_database where datname = $1', [name]);
  return rowCount === 0 ? null : name;
}

/** Leaves a copy of a database behind, for `createTestDatabase`. Ends its connections; its pools open new ones. */
export async function keepDatabase(database: TestDatabase, program: string, kept: string): Promise<void> {
  const { name: template } = await templateOf(program);
  await endConnections(database);
  const admin = new pg.Client({ connectionString: await testServerUrl() });
  await admin.connect();
  const name = new URL(database.url).pathname.slice(1);
  await admin.query(`create database ${keptName(template, kept)} template ${name} strategy file_copy`);
  await admin.end();
}

/** By program. */
const templates = new Map<string, Promise<Template>>();

/** The template of a program, named after the text of its migrations, which is read once: nothing changes it while tests run. */
function templateOf(program: string): Promise<Template> {
  const known = templates.get(program);
  if (known) return known;
  const read = readTemplate(program);
  templates.set(program, read);
  return read;
}

async function readTemplate(program: string): Promise<Template> {
  const migrations = [...new Set([kitMigrations, `${root}${program}/migrations`])];
  const texts = (await readMigrations(migrations)).map(
    (migration) => `${migration.name} ${migration.checksum}`,
  );
  const fingerprint = createHash('sha256').update(texts.join('\n')).digest('hex').slice(0, 12);
  return { name: `svc_template_${program.replace('-', '_')}_${fingerprint}`, migrations };
}

/** Moves `svc_now()` of every new statement in this test database by an interval such as `2 hours`. */
export async function moveDatabaseClock(database: Connected, interval: string): Promise<void> {
  const { rows } = await database.pool.query<{ name: string }>('select current_database() as name');
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query(
    `alter database ${rows[0]!.name} set svc.clock_offset = '${interval.replaceAll("'", "''")}'`,
  );
  await client.end();
  // Sessions that are open keep the old value; ending them makes the pool open new ones.
  await endConnections(database);
}

type Connected = Pick<TestDatabase, 'url' | 'pool'> & Partial<Pick<TestDatabase, 'readerPool'>>;

async function endConnections(database: Connected): Promise<void> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  );
  await client.end();
  // The pools learn of their ended sessions by events; the next query must not meet one of them.
  const deadline = Date.now() + 60_000;
  const { pool, readerPool } = database;
  while (pool.totalCount + (readerPool?.totalCount ?? 0) > 0 && Date.now() < deadline)
    await new Promise((wake) => setImmediate(wake));
}

async function makeTemplate(
  admin: pg.Client,
  template: string,
  url: string,
  migrations: string[],
): Promise<void> {
  const fresh = `${template}_new`;
  await admin.query(`drop database if exists ${fresh} with (force)`);
  await admin.query(`create database ${fresh}`);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await applyMigrations(client, migrations);
  } finally {
    // Left open after a migration that fails, it would keep the test file from ending.
    await client.end();
  }
  await admin.query(`alter database ${fresh} rename to ${template}`);
}

let serverUrlOnce: Promise<string> | null = null;

function testServerUrl(): Promise<string> {
  serverUrlOnce ??= process.env.SVC_TEST_SERVER_URL
    ? Promise.resolve(process.env.SVC_TEST_SERVER_URL)
    : startServer();
  return serverUrlOnce;
}

/** Starts the shared server unless it runs; test files that start at once wait for one another. */
async function startServer(): Promise<string> {
  const dir = testServerDir();
  await mkdir(dir, { recursive: true });
  const lockName = `\0svc-test-server-${createHash('sha256').update(dir).digest('hex').slice(0, 24)}`;
  for (;;) {
    const lock = createServer();
    const isMine = await new Promise<boolean>((done) => {
      lock.once('error', () => done(false));
      lock.listen(lockName, () => done(true));
    });
    if (isMine) {
      try {
        // Tests of durability start servers of their own; here speed matters and a crash loses nothing of worth.
        const settings = {
          fsync: 'off',
          full_page_writes: 'off',
          synchronous_commit: 'off',
          max_connections: '400',
          // Hundreds of databases that live for seconds are not worth looking after.
          autovacuum: 'off',
        };
        return await startDetachedServer(dir, settings, silentReporter);
      } finally {
        await new Promise<void>((done) => lock.close(() => done()));
      }
    }
    await new Promise((wake) => setTimeout(wake, 25));
  }
}
