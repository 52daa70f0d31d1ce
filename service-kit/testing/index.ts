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
import { applyMigrations, createPool, readMigrations } from '#service-kit/postgres/database.ts';
import { startDetachedServer } from '#service-kit/postgres/embedded.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const kitMigrations = fileURLToPath(new URL('../migrations', import.meta.url));

/** The folder of the tests' server. */
export function testServerDir(): string {
  const inMemory = process.env.SVC_TEST_MEMORY_DIR;
  return inMemory ? `${inMemory}/postgres` : `${root}.cache/test-postgres`;
}

export type TestDatabase = Awaited<ReturnType<typeof createTestDatabase>>;

/**
 * A fresh database with the migrations of this folder (`operations`, `monitor`, or `service-kit` for the kit's own alone).
 * `kept` names a database that `keepDatabase` has left behind: this one is a copy of it where there is one.
 */
export async function createTestDatabase(program: string, kept?: string) {
  const template = await templateOf(program);
  const name = `svc_test_${program.replace('-', '_')}_${process.pid}_${randomBytes(4).toString('hex')}`;
  const url = await databaseUrl(name);
  const found = kept === undefined ? null : await findKept(template, kept);
  // A copy of the files takes half of what it takes to log every page of them.
  await administer(`create database ${name} template ${found ?? template} strategy file_copy`);

  // Each connection is a process that reads the catalogue and plans its statements anew.
  const { pool, db } = createPool(url, 6, { prepares: 'always' });
  const { db: reader, pool: readerPool } = createPool(url, 2, { isReadOnly: true, prepares: 'always' });
  /** Drops the database; also what `await using` calls. */
  const drop = async () => {
    await Promise.all([db.destroy(), reader.destroy()]);
    await administer(`drop database if exists ${name} with (force)`);
  };
  return {
    url,
    pool,
    db /** Connections that can only read. */,
    reader,
    readerPool,
    drop,
    [Symbol.asyncDispose]: drop,
  };
}

/** Named after the migrations as well: a database of earlier ones is of no use. */
const keptName = (template: string, kept: string) => `${template}_${kept}`;

async function findKept(template: string, kept: string): Promise<string | null> {
  const name = keptName(template, kept);
  const { rowCount } = await administer('select 1 from pg_database where datname = $1', [name]);
  return rowCount === 0 ? null : name;
}

/** Leaves a copy of a database behind, for `createTestDatabase`. Ends its connections; its pools open new ones. */
export async function keepDatabase(database: TestDatabase, program: string, kept: string): Promise<void> {
  const name = keptName(await templateOf(program), kept);
  await endConnections(database);
  await administer(`create database ${name} template ${nameOf(database)} strategy file_copy`);
}

let adminOnce: Promise<pg.Pool> | null = null;

/** Runs a statement beside the databases. One connection does it for all tests of a process, and does not keep it from ending. */
async function administer(text: string, values: unknown[] = []): Promise<pg.QueryResult> {
  adminOnce ??= testServerUrl().then((connectionString) => {
    const pool = new pg.Pool({ connectionString, max: 1, idleTimeoutMillis: 60_000, allowExitOnIdle: true });
    // The server may end before the process.
    pool.on('error', () => {});
    return pool;
  });
  return await (await adminOnce).query(text, values);
}

const databaseUrl = async (name: string) => (await testServerUrl()).replace('/postgres?', `/${name}?`);
const nameOf = ({ url }: Pick<TestDatabase, 'url'>) => new URL(url).pathname.slice(1);

/** Names of templates by program. */
const templates = new Map<string, Promise<string>>();

/** The template of a program, made at the first call; its migrations are read once: nothing changes them while tests run. */
function templateOf(program: string): Promise<string> {
  const known = templates.get(program);
  if (known) return known;
  const made = prepareTemplate(program);
  templates.set(program, made);
  return made;
}

/** Returns the name, which the text of the migrations decides. Processes that call at once make one template. */
async function prepareTemplate(program: string): Promise<string> {
  const migrations = [...new Set([kitMigrations, `${root}${program}/migrations`])];
  const texts = (await readMigrations(migrations)).map(
    (migration) => `${migration.name} ${migration.checksum}`,
  );
  const fingerprint = createHash('sha256').update(texts.join('\n')).digest('hex').slice(0, 12);
  const name = `svc_template_${program.replace('-', '_')}_${fingerprint}`;
  const admin = new pg.Client({ connectionString: await testServerUrl() });
  await admin.connect();
  try {
    await admin.query('select pg_advisory_lock(7318002)');
    const { rowCount } = await admin.query('select 1 from pg_database where datname = $1', [name]);
    if (rowCount === 0) await makeTemplate(admin, name, await databaseUrl(`${name}_new`), migrations);
  } finally {
    await admin.end();
  }
  return name;
}

/** Moves `svc_now()` of every new statement in this test database by an interval such as `2 hours`. */
export async function moveDatabaseClock(database: Connected, interval: string): Promise<void> {
  await presetDatabaseClock(database, interval);
  // Sessions that are open keep the old value; ending them makes the pool open new ones.
  await endConnections(database);
}

/** The same for sessions that begin from now on. */
export async function presetDatabaseClock(
  database: Pick<TestDatabase, 'url'>,
  interval: string,
): Promise<void> {
  const text = interval.replaceAll("'", "''");
  await administer(`alter database ${nameOf(database)} set svc.clock_offset = '${text}'`);
}

type Connected = Pick<TestDatabase, 'url' | 'pool'> & Partial<Pick<TestDatabase, 'readerPool'>>;

async function endConnections(database: Connected): Promise<void> {
  await administer('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
    nameOf(database),
  ]);
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
