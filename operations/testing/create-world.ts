/**
 * A small world for tests of the surfaces: the program as it is composed, on a real database, with a hypervisor that takes
 * no time. Customers and servers are made through the same doors that the product uses.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestClock, systemClock, type TestClock } from '#common/clock/index.ts';
import type { Incident } from '#contracts/admin-api/incidents.ts';
import { type Person, systemActor, type Tenant } from '#operations/accounts/index.ts';
import { appendLedgerEntry } from '#operations/billing/index.ts';
import { compose } from '#operations/composition.ts';
import { type OperationsSettings, readOperationsSettings } from '#operations/config.ts';
import { createSimulatedDriver, type HypervisorDriver, singleDriver } from '#operations/hypervisors/index.ts';
import type { Overrides } from '#operations/overrides.ts';
import { observePower } from '#operations/servers/index.ts';
import { watchAnswers } from '#operations/surfaces/customer-api/testing/watch-answers.ts';
import { listCaughtMail } from '#service-kit/mail/index.ts';
import { testWrapper } from '#service-kit/secrets/testing/test-secrets.ts';
import '#service-kit/sessions/testing/cheap-passwords.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';
import { createMemoryDns } from './memory-dns.ts';
import { seedCatalog } from './seed-catalog.ts';
import { createSecretWatch } from './watch-secrets.ts';
import { beginMachineTime, beginWorldTime, endWorldTime } from './world-time.ts';

export const password = 'a password for tests';

type WorldOverrides = Pick<
  Overrides,
  | 'gateway'
  | 'reverseDns'
  | 'idempotency'
  | 'receivers'
  | 'signInFailuresMax'
  | 'countLockTimeoutMs'
  | 'consoleCheckMs'
>;

/** Other settings and parts than those of a test. */
export interface WorldOptions extends Partial<Omit<OperationsSettings, 'hypervisor'>>, WorldOverrides {
  /** It has a date of its own. */
  isDated?: boolean;
  /** Wall time of the process, which stands still. */
  clockStartMs?: number;
  /** Stands in for the hypervisor that takes no time. */
  hypervisor?: (usual: HypervisorDriver) => HypervisorDriver;
  /** A fresh one when absent. */
  database?: TestDatabase;
}

export type World = Awaited<ReturnType<typeof createWorld>>;

/** Limits out of the way of tests, and the addresses that documentation uses. */
const testSettings: Partial<OperationsSettings> = {
  port: 0,
  paymentGateway: 'test',
  authFailuresMax: 1_000,
  adminAuthFailuresMax: 1_000,
  deploysPerHour: 1_000,
  requestsPerMinute: 100_000,
  allowDocumentationAddresses: true,
  webhookPrivateTargets: true,
};

export async function createWorld(options: WorldOptions = {}) {
  const {
    gateway,
    reverseDns,
    idempotency,
    receivers,
    countLockTimeoutMs,
    signInFailuresMax = 1_000,
    ...others
  } = options;
  const { consoleCheckMs, ...rest } = others;
  const { isDated, clockStartMs, hypervisor: replaceDriver, database: givenDatabase, ...given } = rest;
  const database = givenDatabase ?? (await createTestDatabase('operations'));
  const secrets = createSecretWatch();
  const { reporter } = secrets;
  const mailFolder = await mkdtemp(join(tmpdir(), 'svc-world-mail-'));
  const settings = { ...readOperationsSettings({}), ...testSettings, mailFolder, ...given };
  const ownClock = isDated ? await beginWorldTime(database) : beginMachineTime(database);
  const clock = clockStartMs === undefined ? ownClock : createTestClock(clockStartMs);
  const simulated = createSimulatedDriver({
    db: () => database.db,
    clock: systemClock,
    preparedGuests: [],
    stepMs: 0,
  });
  const hypervisor = replaceDriver?.(simulated) ?? simulated;
  const dns = createMemoryDns();
  let answers: ReturnType<typeof watchAnswers> | null = null;
  const operations = await compose(settings, {
    ...(gateway && { gateway }),
    ...(idempotency && { idempotency }),
    ...(receivers && { receivers }),
    ...(countLockTimeoutMs !== undefined && { countLockTimeoutMs }),
    ...(consoleCheckMs !== undefined && { consoleCheckMs }),
    database: { ...database, name: 'database', start: async () => {}, stop: async () => {} },
    reporter,
    clock,
    keyWrapper: testWrapper,
    hypervisors: () => singleDriver(hypervisor),
    reverseDns: reverseDns ?? dns,
    apiKeys: secrets.watchKeys,
    adminProjects: secrets.watchTokens,
    signInFailuresMax,
    baseUrl: () => http.url,
    onApp(app) {
      answers = watchAnswers(app);
      secrets.watchApp(app);
    },
  });
  const { accounts, addresses, adminProjects, apiKeys, billing, clusters, hypervisors, payments } =
    operations;
  const jobs = operations.background.workers[0]!;
  const http = await operations.createServer();
  await http.start();
  const clusterId = await seedCatalog(database.db);

  let made = 0;
  let monitor: { id: number } | null = null;
  return {
    ...operations,
    database,
    /** Every secret of the test, and where it was seen. */
    watch: secrets,
    jobs,
    hypervisor,
    dns,
    clusterId,
    url: http.url,
    /** Everything that the server answers. */
    routes: http.routes,
    testClock: clock as TestClock,

    /** The mails to this address, the newest first; waits for those that are on their way. */
    async mailsTo(email: string) {
      await operations.post.idle();
      return (await listCaughtMail(mailFolder)).filter((mail) => mail.to === email);
    },

    /** One look of the power observer. */
    observePower: () => observePower({ db: operations.db, clusters, hypervisors, reporter }),

    /** An organization with an owner, credit and a billing profile. */
    async createCustomer(name: string): Promise<{ owner: Person; tenant: Tenant; email: string }> {
      made += 1;
      const email = `owner-${made}@${name.toLowerCase().replace(/[^a-z]/g, '')}.test`;
      const owner = await accounts.createPerson(systemActor, { email, name: `${name} Owner`, password });
      const { tenant } = await accounts.createOrganization(systemActor, { name, ownerId: owner.id });
      await accounts.setBillingProfile(systemActor, tenant.id, { legalName: name, email, country: 'DE' });
      await billing.addDeposit(systemActor, tenant.id, {
        amountQuanta: 1_000_000,
        reference: `test-${made}`,
        description: 'Deposit',
      });
      return { owner, tenant, email };
    },

    /** Saves a test card, which becomes the one that is charged. */
    saveCard(tenant: Tenant, number = '4242424242424242'): Promise<number> {
      return payments.finishCardSetup(systemActor, tenant.id, number);
    },

    /** Sets an account's credit by a ledger entry. */
    async setBalance(tenant: Tenant, quanta: number): Promise<void> {
      made += 1;
      const amountQuanta = quanta - (await billing.balanceOf(systemActor, tenant.id));
      const metadata = { source: 'test', reference: `set-${made}` };
      if (amountQuanta !== 0)
        await appendLedgerEntry(database.db, {
          tenantId: tenant.id,
          amountQuanta,
          description: 'Test',
          metadata,
        });
    },

    /** A key of this customer, for all tenants of its organization unless some are named. */
    async createKey(
      customer: { owner: Person; tenant: Tenant },
      scope: 'read' | 'full' = 'full',
      tenantIds: readonly number[] | null = null,
    ): Promise<string> {
      const issued = await apiKeys.issueKey(systemActor, {
        organizationId: customer.tenant.organizationId,
        personId: customer.owner.id,
        name: `${scope} key`,
        scope,
        tenantIds,
      });
      return issued.token;
    },

    /** A running server; returns its id and its active allocations. */
    async deploy(tenant: Tenant, name: string) {
      const { serverId } = await operations.ordering.createServer(systemActor, {
        tenantId: tenant.id,
        plan: 'small',
        image: 'debian-12',
        name,
      });
      await jobs.drain();
      return { serverId, allocations: await addresses.listAllocationsOfServers([serverId]) };
    },

    /** Makes a server and its addresses older by this, such as `2 hours`. */
    async backdate(serverId: number, interval: string): Promise<void> {
      await database.pool.query(
        `with moved as (update servers set created_at = created_at - $2::interval where id = $1)
        update allocations set assigned_at = assigned_at - $2::interval where server_id = $1`,
        [serverId, interval],
      );
    },

    /** Signs in over HTTP; the cookie of the session. */
    async signIn(email: string, given = password): Promise<string> {
      const answer = await fetch(`${http.url}/sign-in`, {
        method: 'POST',
        body: new URLSearchParams({ email, password: given }),
        redirect: 'manual',
      });
      return (answer.headers.get('set-cookie') ?? '').split(';')[0]!;
    },

    /** A token of a new project with these permissions. */
    async createToken(
      permissions: readonly string[],
      clusterIds: readonly number[] | null = null,
    ): Promise<string> {
      made += 1;
      const project = await adminProjects.create(systemActor, {
        name: `project ${made}`,
        permissions,
        clusterIds,
      });
      return (await adminProjects.issueToken(systemActor, project.id, null)).token;
    },

    /** Delivers incidents as a monitor does; their outcomes. */
    async deliverIncidents(...incidents: Incident[]): Promise<string[]> {
      monitor ??= await adminProjects.create(systemActor, {
        name: 'monitor of incidents',
        permissions: ['ddos_incident_ingest'],
        clusterIds: null,
      });
      const { outcomes } = await operations.protectIncidents.receive(
        { projectId: monitor.id, clusterIds: null },
        { contract_version: 1, source_site_id: 1, cluster_ids: [clusterId], incidents },
      );
      return outcomes.map(({ outcome }) => outcome);
    },

    async [Symbol.asyncDispose]() {
      await http.stop();
      await operations.post.idle();
      await rm(mailFolder, { recursive: true });
      await operations.notifications.stop();
      const { leaks } = await secrets.findLeaks(database.pool);
      await database.drop();
      endWorldTime(database);
      answers?.throwFaults();
      if (leaks.length > 0) throw new Error(`secrets where none may be:\n${leaks.join('\n')}`);
    },
  };
}
