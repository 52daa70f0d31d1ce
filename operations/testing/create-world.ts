/**
 * A small world for tests of the surfaces: a real database, every feature, the real HTTP server, a hypervisor that
 * takes no time. Customers and servers are made through the same doors that the product uses.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestClock, systemClock, type TestClock } from '#common/clock/index.ts';
import { createAccounts, type Person, systemActor, type Tenant } from '#operations/accounts/index.ts';
import { createAddresses } from '#operations/addresses/index.ts';
import { createAdminProjects } from '#operations/admin-projects/index.ts';
import { createApiKeys, revokeKeysOf } from '#operations/api-keys/index.ts';
import { createBandwidth } from '#operations/bandwidth/index.ts';
import { appendLedgerEntry, createBilling } from '#operations/billing/index.ts';
import { createCatalog } from '#operations/catalog/index.ts';
import { createClusters } from '#operations/clusters/index.ts';
import { type FeedReceiver, listPermissions } from '#operations/feeds/index.ts';
import { createFirewalls, firewallJobs } from '#operations/firewall/index.ts';
import { createSimulatedDriver, type HypervisorDriver, singleDriver } from '#operations/hypervisors/index.ts';
import { createIdempotency, type Idempotency } from '#operations/idempotency/index.ts';
import { createMetering } from '#operations/metering/index.ts';
import { createNetworks, networkJobs } from '#operations/networks/index.ts';
import { createOrders } from '#operations/orders/index.ts';
import { createPayments, createTestGateway, type PaymentGateway } from '#operations/payments/index.ts';
import { createProtectTraffic } from '#operations/protect-traffic/index.ts';
import { createReceivers } from '#operations/receivers.ts';
import { createServers, observePower, serverJobs } from '#operations/servers/index.ts';
import { registerAdminApi } from '#operations/surfaces/admin-api/index.ts';
import { registerConsole } from '#operations/surfaces/console/index.ts';
import { registerCustomerApi } from '#operations/surfaces/customer-api/index.ts';
import { watchAnswers } from '#operations/surfaces/customer-api/testing/watch-answers.ts';
import { registerPortal } from '#operations/surfaces/portal/index.ts';
import { registerPublic, renderErrorPage } from '#operations/surfaces/public/index.ts';
import { createWebhooks, webhookSecrets } from '#operations/webhooks/index.ts';
import { createAuditTrail } from '#service-kit/audit/index.ts';
import { createHttpServer } from '#service-kit/http/index.ts';
import { createJobRunner, type JobRunner } from '#service-kit/jobs/index.ts';
import { createPost, listCaughtMail } from '#service-kit/mail/index.ts';
import { createNotifications } from '#service-kit/notifications/index.ts';
import { registerAssets } from '#service-kit/pages/index.ts';
import { createSecondFactors, factorSecrets } from '#service-kit/second-factors/index.ts';
import { createTestSecrets } from '#service-kit/secrets/testing/test-secrets.ts';
import { createSessions } from '#service-kit/sessions/index.ts';
import '#service-kit/sessions/testing/cheap-passwords.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { seedCatalog } from './seed-catalog.ts';
import { createSecretWatch } from './watch-secrets.ts';

export const password = 'a password for tests';

export interface WorldOptions {
  /** Wall time of the pages; the machine's when absent. */
  clockStartMs?: number;
  authFailuresMax?: number;
  signInFailuresMax?: number;
  isDocumentationGlobal?: boolean;
  /** Stands in for the hypervisor that takes no time. */
  hypervisor?: (usual: HypervisorDriver) => HypervisorDriver;
  deploysPerHour?: number;
  /** Stands in for what makes calls repeatable. */
  idempotency?: (usual: Idempotency) => Idempotency;
  networksMax?: number;
  bandwidthSource?: 'hypervisor' | 'telemetry';
  /** Stands in for the test gateway. */
  gateway?: (usual: PaymentGateway) => PaymentGateway;
  includedPerMonth?: number;
  /** How long the requests of a locked account wait to be counted. */
  countLockTimeoutMs?: number;
  /** A mail server; mails are caught in a folder when absent, and nothing can send any when null. */
  smtpUrl?: string | null;
  requireSecondFactor?: boolean;
  /** Receivers beside those of the product. */
  receivers?: readonly FeedReceiver[];
  /** Budget of one customer key. */
  requestsPerMinute?: number;
}

export type World = Awaited<ReturnType<typeof createWorld>>;

export async function createWorld(options: WorldOptions = {}) {
  const database = await createTestDatabase('operations');
  const db = () => database.db;
  const pool = () => database.pool;
  const secrets = createSecretWatch();
  const { reporter } = secrets;
  const sealing = createTestSecrets({
    db,
    program: 'operations',
    columns: [...webhookSecrets, ...factorSecrets],
  });
  const isDocumentationGlobal = options.isDocumentationGlobal ?? true;
  let ownUrl = '';
  const mailFolder = await mkdtemp(join(tmpdir(), 'svc-world-mail-'));
  const post = createPost({
    smtp: options.smtpUrl ? { url: options.smtpUrl, from: 'svc <no-reply@svc.test>' } : null,
    folder: options.smtpUrl === undefined ? mailFolder : null,
    baseUrl: () => ownUrl,
    reporter,
  });
  const accounts = createAccounts({ db, post, revokeKeysOf });
  const addresses = createAddresses({ db });
  const catalog = createCatalog({ db });
  const usualGateway = createTestGateway({ db });
  const paymentsDeps = { db, gateway: options.gateway?.(usualGateway) ?? usualGateway, reporter };
  const payments = createPayments(paymentsDeps);
  const orders = createOrders({ db, payments, deploysPerHour: options.deploysPerHour ?? 1_000 });
  const billing = createBilling({ db, pool, gateway: payments.gatewayName });
  const apiKeys = secrets.watchKeys(createApiKeys({ db, pool, reporter }));
  const protectTraffic = createProtectTraffic({ db, addresses, isDocumentationGlobal });
  const receivers = [...createReceivers({ protectTraffic }), ...(options.receivers ?? [])];
  const adminProjects = secrets.watchTokens(
    createAdminProjects({
      db,
      permissions: listPermissions(receivers),
      authFailuresMax: options.authFailuresMax ?? 1_000,
    }),
  );
  const simulated = createSimulatedDriver({ db, clock: systemClock, preparedGuests: [], stepMs: 0 });
  const hypervisor = options.hypervisor?.(simulated) ?? simulated;
  const hypervisors = singleDriver(hypervisor);
  const metering = createMetering({
    db,
    pool,
    reporter,
    includedPerMonth: options.includedPerMonth ?? 5_000,
    price: { unitRequests: 100_000, rateQuanta: 10_000 },
    lockTimeoutMs: options.countLockTimeoutMs,
  });
  let jobs: JobRunner | null = null;
  const clusters = createClusters({ db, hypervisors });
  const networksDeps = {
    db,
    catalog,
    clusters,
    hypervisors,
    reporter,
    networksMax: options.networksMax ?? 10,
    wake: () => jobs?.wake(),
  };
  const networks = createNetworks(networksDeps);
  const firewallsDeps = { db, hypervisors, reporter, wake: () => jobs?.wake() };
  const bandwidth = createBandwidth({
    db,
    source: options.bandwidthSource ?? 'hypervisor',
    poolCounts: 'outbound',
    rules: {
      baseBytes: 1_000_000_000_000,
      perServerBytes: 500_000_000_000,
      tenureYearBytes: 100_000_000_000,
      tenureBytesMax: 1_000_000_000_000,
    },
  });
  const serversDeps = {
    db,
    pool,
    catalog,
    addresses,
    networks,
    hypervisors,
    orders,
    reporter,
    wake: () => jobs?.wake(),
  };
  const servers = createServers(serversDeps);
  jobs = createJobRunner({
    db,
    handlers: { ...serverJobs(serversDeps), ...networkJobs(networksDeps), ...firewallJobs(firewallsDeps) },
    clock: systemClock,
    reporter,
  });
  const sessions = createSessions({
    db,
    cookieName: 'svc_operations',
    isHttps: false,
    failuresMax: options.signInFailuresMax ?? 1_000,
  });
  const clock = options.clockStartMs === undefined ? systemClock : createTestClock(options.clockStartMs);
  const notifications = createNotifications({ pool, channel: 'svc_operations' });
  const surfaces = {
    idempotency: (options.idempotency ?? ((usual) => usual))(createIdempotency({ db })),
    notifications,
    accounts,
    post,
    factors: createSecondFactors({ db, clock, secrets: sealing, issuer: 'svc' }),
    adminProjects,
    addresses,
    apiKeys,
    auditTrail: createAuditTrail({ db }),
    metering,
    billing,
    orders,
    payments,
    catalog,
    bandwidth,
    firewalls: createFirewalls(firewallsDeps),
    networks,
    clusters,
    servers,
    protectTraffic,
    receivers,
    sessions,
    webhooks: createWebhooks({ db, secrets: sealing, rules: { allowPrivate: true } }),
    clock,
    apiFacts: {
      origin: null,
      requestsPerMinute: 120,
      deploysPerHour: 100,
      includedPerMonth: 5_000,
      overageUnitRequests: 100_000,
      overageRateQuanta: 10_000,
    },
  };
  let answers: ReturnType<typeof watchAnswers> | null = null;
  const http = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter,
    errorPage: renderErrorPage,
    async routes(app) {
      answers = watchAnswers(app);
      secrets.watchApp(app);
      registerAssets(app);
      await registerPublic(app, { ...surfaces, db, publicUrl: null, isDatabaseReady: async () => {} });
      await registerPortal(app, { ...surfaces, publicUrl: null });
      await registerConsole(app, {
        ...surfaces,
        publicUrl: null,
        requireSecondFactor: options.requireSecondFactor ?? false,
      });
      await registerAdminApi(app, { ...surfaces, isDocumentationGlobal });
      await registerCustomerApi(app, {
        ...surfaces,
        requestsPerMinute: options.requestsPerMinute ?? 100_000,
        authFailuresMax: options.authFailuresMax ?? 1_000,
      });
    },
  });
  await http.start();
  ownUrl = http.url;
  const clusterId = await seedCatalog(db());

  let made = 0;
  return {
    database,
    secrets,
    sealing,
    reporter,
    ...surfaces,
    jobs,
    serversDeps,
    paymentsDeps,
    hypervisor,
    clusterId,
    url: http.url,
    /** Everything that the server answers. */
    routes: http.routes,
    testClock: clock as TestClock,

    /** The mails to this address, the newest first; waits for those that are on their way. */
    async mailsTo(email: string) {
      await post.idle();
      return (await listCaughtMail(mailFolder)).filter((mail) => mail.to === email);
    },

    /** One look of the power observer. */
    observePower: () => observePower({ db, clusters: surfaces.clusters, hypervisors, reporter }),

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
      const { serverId } = await servers.createServer(systemActor, {
        tenantId: tenant.id,
        plan: 'small',
        image: 'debian-12',
        name,
      });
      await jobs.drain();
      return { serverId, allocations: await addresses.listAllocationsOfServers([serverId]) };
    },

    /** Makes a server's addresses as old as this, such as `2 hours`. */
    async backdate(serverId: number, interval: string): Promise<void> {
      await database.pool.query(
        'update allocations set assigned_at = assigned_at - $2::interval where server_id = $1',
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

    async [Symbol.asyncDispose]() {
      await http.stop();
      await post.idle();
      await rm(mailFolder, { recursive: true });
      await notifications.stop();
      const { leaks } = await secrets.findLeaks(database.pool);
      await database.drop();
      answers?.throwFaults();
      if (leaks.length > 0) throw new Error(`secrets where none may be:\n${leaks.join('\n')}`);
    },
  };
}
