/** Operations and the monitor as processes, with a customer, a server, an operator and an enrolled sensor. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { silentReporter } from '#common/reporter/index.ts';
import { compose as composeMonitor } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { systemActor as monitorActor } from '#monitor/operators/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { compose as composeOperations } from '#operations/composition.ts';
import { readOperationsSettings } from '#operations/config.ts';
import { seedCatalog } from '#operations/testing/seed-catalog.ts';

/** The command of the manual. */
export const svc = fileURLToPath(new URL('../../svc', import.meta.url));

/** Settings of both programs. */
export type Environment = Readonly<Record<string, string>>;

export interface Seeded {
  customer: { email: string; password: string };
  operator: { email: string; password: string };
  /** A key of the customer with write access. */
  key: string;
  siteId: number;
  /** Of the sensor. */
  credential: string;
}

const password = 'an installation that is restored';

/** Fills both databases before the programs start. */
export async function seed(environment: Environment): Promise<Seeded> {
  const operations = await seedOperations(environment);
  const monitor = await seedMonitor(environment, operations.token);
  return { customer: operations.customer, key: operations.key, ...monitor };
}

async function seedOperations(environment: Environment) {
  const features = await composeOperations(readOperationsSettings(environment), { reporter: silentReporter });
  const { database, accounts, billing, apiKeys, adminProjects } = features;
  await database.start();
  try {
    await seedCatalog(database.db);
    const email = 'customer@restored.example';
    const owner = await accounts.createPerson(systemActor, { email, name: 'Restored', password });
    const { tenant } = await accounts.createOrganization(systemActor, {
      name: 'Restored',
      ownerId: owner.id,
    });
    await accounts.setBillingProfile(systemActor, tenant.id, { legalName: 'Restored', email, country: 'DE' });
    const deposit = { amountQuanta: 1_234_500, reference: 'deposit', description: 'Deposit' };
    await billing.addDeposit(systemActor, tenant.id, deposit);
    const { token: key } = await apiKeys.issueKey(systemActor, {
      organizationId: tenant.organizationId,
      personId: owner.id,
      name: 'key',
      scope: 'full',
      tenantIds: null,
    });
    const permissions = ['vm_inventory_read', 'protect_telemetry_ingest'];
    const project = await adminProjects.create(systemActor, {
      name: 'monitor',
      permissions,
      clusterIds: null,
    });
    const { token } = await adminProjects.issueToken(systemActor, project.id, null);
    return { customer: { email, password }, key, token };
  } finally {
    await database.stop();
  }
}

async function seedMonitor(environment: Environment, token: string) {
  const monitor = composeMonitor(readConfig(environment), { reporter: silentReporter });
  await monitor.database.start();
  try {
    await monitor.secrets.part.start();
    const email = 'operator@restored.example';
    await monitor.operators.add({ email, name: 'Restored', password, role: 'operator' });
    const site = await monitor.sites.create(monitorActor, 'Restored');
    // Sealed by the key outside the database. No program listens there.
    await monitor.connection.save(monitorActor, { baseUrl: 'http://127.0.0.1:9', token, isEnabled: false });
    const enrolment = await monitor.sensors.createToken(monitorActor, site.id);
    const host = { host_name: 'node-1', node: 'simulated-1', sensor_version: '0.1.0' };
    const enrolled = await monitor.sensors.enrol({ token: enrolment.token, ...host });
    return { operator: { email, password }, siteId: site.id, credential: enrolled!.credential };
  } finally {
    await monitor.secrets.part.stop();
    await monitor.database.stop();
  }
}

export interface Serving {
  operationsUrl: string;
  monitorUrl: string;
  /** SIGTERM to both; throws when one does not end with 0. */
  stop(): Promise<void>;
  kill(): void;
}

/** Starts both programs; resolves when they are ready. */
export async function serve(environment: Environment): Promise<Serving> {
  const children = ['operations', 'monitor'].map((name) =>
    spawn(svc, [name, 'serve'], {
      env: { PATH: process.env.PATH, ...environment },
      stdio: ['ignore', 'ignore', 'pipe'],
    }),
  );
  const kill = () => {
    for (const child of children) child.kill('SIGKILL');
  };
  try {
    const [operationsUrl, monitorUrl] = await Promise.all(children.map(urlOf));
    return {
      operationsUrl: operationsUrl!,
      monitorUrl: monitorUrl!,
      async stop() {
        for (const child of children) {
          const gone = once(child, 'exit');
          child.kill('SIGTERM');
          const [code] = await gone;
          if (code !== 0) throw new Error(`a program ended with ${code}`);
        }
      },
      kill,
    };
  } catch (error) {
    kill();
    throw error;
  }
}

function urlOf(child: ChildProcess): Promise<string> {
  const log: string[] = [];
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stderr! }).on('line', (line) => {
      log.push(line);
      const url = /ready.*"url":"([^"]+)"/.exec(line)?.[1];
      if (url !== undefined) resolve(url);
    });
    child.once('exit', (code) => reject(new Error(`serve ended with ${code}:\n${log.join('\n')}`)));
  });
}
