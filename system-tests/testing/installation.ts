/**
 * Operations as several processes: a PostgreSQL with every safety on, and as many `./svc operations serve --only …` as are
 * asked for, each on a port of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { silentReporter } from '#common/reporter/index.ts';
import { type Person, systemActor, type Tenant } from '#operations/accounts/index.ts';
import { compose } from '#operations/composition.ts';
import type { Features } from '#operations/features.ts';
import { seedCatalog } from '#operations/testing/seed-catalog.ts';
import { startOwnDatabase } from '#operations/testing/start-own-database.ts';

export interface ServeProcess {
  /** Of its pages, or of its health. */
  url: string;
  pid: number;
  /** Its log, line by line. */
  log: string[];
  /** SIGTERM; resolves with the exit code. */
  end(): Promise<number | null>;
}

export interface Installation extends AsyncDisposable {
  features: Features;
  pool: pg.Pool;
  /** Starts a process in these roles; resolves when it is ready. */
  start(roles: string, environment?: Readonly<Record<string, string>>): Promise<ServeProcess>;
  /** A customer with credit. */
  addCustomer(name: string): Promise<{ owner: Person; tenant: Tenant; email: string }>;
  /** Tokens of new keys; a person has 25 at most, so for many there are several customers. */
  addKeys(count: number): Promise<string[]>;
}

export const password = 'an installation of processes';
const keysOfPerson = 25;
const program = fileURLToPath(new URL('../../svc.ts', import.meta.url));

export async function createInstallation(): Promise<Installation> {
  await using undo = new AsyncDisposableStack();
  const { dir, url, settings, database } = await startOwnDatabase(undo);
  const features = await compose(settings, { database, reporter: silentReporter });
  await seedCatalog(database.db);
  const children: ChildProcess[] = [];
  undo.defer(async () => {
    for (const child of children) child.kill('SIGKILL');
  });
  const common = {
    SVC_DATA_DIR: dir,
    SVC_OPERATIONS_DATABASE_URL: url,
    SVC_OPERATIONS_PORT: '0',
    SVC_PAYMENT_GATEWAY: 'test',
    SVC_ALLOW_DOCUMENTATION_ADDRESSES: '1',
    SVC_LOG_FORMAT: 'json',
  };
  const addCustomer = createCustomers(features);
  const owned = undo.move();
  return {
    features,
    pool: database.pool,
    addCustomer,
    async start(roles, environment = {}) {
      const child = spawn(process.execPath, [program, 'operations', 'serve', '--only', roles], {
        env: { PATH: process.env.PATH, ...common, ...environment },
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      children.push(child);
      return await waitUntilReady(child);
    },
    async addKeys(count) {
      const tokens: string[] = [];
      while (tokens.length < count) {
        const { owner, tenant } = await addCustomer(`Owner ${tokens.length}`);
        for (let i = 0; i < keysOfPerson && tokens.length < count; i += 1) {
          const issued = await features.apiKeys.issueKey(systemActor, {
            organizationId: tenant.organizationId,
            personId: owner.id,
            name: `key ${i}`,
            scope: 'full',
            tenantIds: null,
          });
          tokens.push(issued.token);
        }
      }
      return tokens;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function createCustomers({ accounts, billing }: Features): Installation['addCustomer'] {
  let made = 0;
  return async (name) => {
    made += 1;
    const email = `owner-${made}@example.test`;
    const owner = await accounts.createPerson(systemActor, { email, name, password });
    const { tenant } = await accounts.createOrganization(systemActor, { name, ownerId: owner.id });
    await accounts.setBillingProfile(systemActor, tenant.id, { legalName: name, email, country: 'DE' });
    const deposit = { amountQuanta: 1_000_000, reference: `deposit-${made}`, description: 'Deposit' };
    await billing.addDeposit(systemActor, tenant.id, deposit);
    return { owner, tenant, email };
  };
}

function waitUntilReady(child: ChildProcess): Promise<ServeProcess> {
  const log: string[] = [];
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  const serving: Omit<ServeProcess, 'url'> = {
    pid: child.pid!,
    log,
    end() {
      child.kill('SIGTERM');
      return ended;
    },
  };
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stderr! }).on('line', (line) => {
      log.push(line);
      const url = /ready.*"url":"([^"]+)"/.exec(line)?.[1];
      if (url !== undefined) resolve({ ...serving, url });
    });
    void ended.then((code) => reject(new Error(`serve ended with ${code}:\n${log.join('\n')}`)));
  });
}
