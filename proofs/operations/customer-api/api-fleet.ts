/**
 * Several processes of the customer API on one database, with one customer and many keys, for proofs of what has to hold
 * across processes. Durable fleets have a PostgreSQL of their own with every safety on, which can be killed too.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { silentReporter } from '#common/reporter/index.ts';
import { type Person, systemActor, type Tenant } from '#operations/accounts/index.ts';
import { compose } from '#operations/composition.ts';
import { readOperationsSettings } from '#operations/config.ts';
import type { Features } from '#operations/features.ts';
import { startOwnDatabase } from '#operations/testing/start-own-database.ts';
import { beginWorldTime, endWorldTime } from '#operations/testing/world-time.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import type { ProcessOrders } from './api-process.ts';

export interface FleetOptions {
  processes: number;
  keys: number;
  /** A database whose commits survive a kill. */
  isDurable?: boolean;
  acknowledgesEarly?: boolean;
  /** How wrong the processes' clocks are, in turn. */
  skewsMs?: readonly number[];
}

export interface Fleet extends AsyncDisposable {
  readonly features: Features;
  readonly pool: pg.Pool;
  readonly databaseUrl: string;
  readonly owner: Person;
  readonly tenant: Tenant;
  readonly keys: readonly string[];
  /** Address of each process; changes when one is replaced. */
  readonly urls: readonly string[];
  /** Kills a process at once and starts another in its place; resolves when that serves. */
  replace(index: number): Promise<void>;
  /** Kills the database server at once; it is brought back by itself. */
  killDatabase(): Promise<void>;
}

export async function createFleet(options: FleetOptions): Promise<Fleet> {
  await using undo = new AsyncDisposableStack();
  const place = options.isDurable ? await createDurable(undo) : await createQuick(undo);
  const { pool, db } = createPool(place.url, 20);
  undo.defer(() => db.destroy());
  const database = { name: 'database', pool, db, reader: db, start: async () => {}, stop: async () => {} };
  const features = await compose(readOperationsSettings({}), { database, reporter: silentReporter });
  const { owner, tenant, keys } = await seed(features, options.keys);
  const children: ChildProcess[] = [];
  const urls: string[] = [];
  undo.defer(() => {
    for (const child of children) child.kill('SIGKILL');
  });
  const start = async (index: number) => {
    const skews = options.skewsMs ?? [0];
    const orders: ProcessOrders = {
      databaseUrl: place.url,
      includedPerMonth: 5_000,
      skewMs: skews[index % skews.length]!,
      acknowledgesEarly: options.acknowledgesEarly ?? false,
    };
    const file = fileURLToPath(new URL('./api-process.ts', import.meta.url));
    const child = spawn(process.execPath, [file, JSON.stringify(orders)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children[index] = child;
    const [line] = (await once(child.stdout!, 'data')) as [Buffer];
    urls[index] = String(line).trim();
  };
  await Promise.all(Array.from({ length: options.processes }, (_, index) => start(index)));
  const owned = undo.move();
  return {
    features,
    pool,
    databaseUrl: place.url,
    owner,
    tenant,
    keys,
    urls,
    async replace(index) {
      children[index]!.kill('SIGKILL');
      await start(index);
    },
    killDatabase: place.kill,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

interface Place {
  url: string;
  kill: () => Promise<void>;
}

async function createQuick(undo: AsyncDisposableStack): Promise<Place> {
  const database = await createTestDatabase('operations');
  await beginWorldTime(database);
  undo.defer(async () => {
    await database.drop();
    endWorldTime(database);
  });
  const kill = async () => {
    throw new Error('only a durable fleet has a database server of its own');
  };
  return { url: database.url, kill };
}

async function createDurable(undo: AsyncDisposableStack): Promise<Place> {
  const { dir, url, database } = await startOwnDatabase(undo);
  await database.stop();
  const pidFile = join(dir, 'postgres/data/postmaster.pid');
  const kill = async () => {
    const before = await waitForServer(pidFile, null);
    process.kill(before, 'SIGKILL');
    // Sessions of the dead server may still answer: it is back when another one has taken its place.
    await waitForServer(pidFile, before);
  };
  return { url, kill };
}

/** The living server's process, once it is another than this one. */
async function waitForServer(pidFile: string, before: number | null): Promise<number> {
  for (let attempt = 0; attempt < 1_200; attempt += 1) {
    const pid = Number((await readFile(pidFile, 'utf8').catch(() => '')).split('\n')[0]);
    if (pid > 0 && pid !== before && isAlive(pid)) return pid;
    await new Promise((wake) => setTimeout(wake, 25));
  }
  throw new Error('the database server did not come back');
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function seed(
  features: Features,
  count: number,
): Promise<{ owner: Person; tenant: Tenant; keys: string[] }> {
  const { accounts, billing, apiKeys } = features;
  const email = 'fleet@example.test';
  const owner = await accounts.createPerson(systemActor, {
    email,
    name: 'Fleet',
    password: 'a fleet of processes',
  });
  const { tenant } = await accounts.createOrganization(systemActor, { name: 'Fleet', ownerId: owner.id });
  await accounts.setBillingProfile(systemActor, tenant.id, { legalName: 'Fleet', email, country: 'DE' });
  const deposit = { amountQuanta: 1_000_000, reference: 'fleet', description: 'Deposit' };
  await billing.addDeposit(systemActor, tenant.id, deposit);
  const keys: string[] = [];
  for (let i = 0; i < count; i += 1) {
    const issued = await apiKeys.issueKey(systemActor, {
      organizationId: tenant.organizationId,
      personId: owner.id,
      name: `key ${i}`,
      scope: 'full',
      tenantIds: null,
    });
    keys.push(issued.token);
  }
  return { owner, tenant, keys };
}
