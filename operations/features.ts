/** The features of operations, wired to one another; inert until the database has been started. */
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type Accounts, createAccounts } from '#operations/accounts/index.ts';
import { type Addresses, createAddresses } from '#operations/addresses/index.ts';
import { type AdminProjects, createAdminProjects } from '#operations/admin-projects/index.ts';
import { type ApiKeys, createApiKeys, revokeKeysOf } from '#operations/api-keys/index.ts';
import { type Bandwidth, type BandwidthDeps, createBandwidth } from '#operations/bandwidth/index.ts';
import { type Billing, createBilling } from '#operations/billing/index.ts';
import { type Catalog, createCatalog } from '#operations/catalog/index.ts';
import { type Clusters, createClusters } from '#operations/clusters/index.ts';
import { type FeedReceiver, listPermissions } from '#operations/feeds/index.ts';
import { createFirewalls, type Firewalls, type FirewallsDeps } from '#operations/firewall/index.ts';
import { createHypervisors, type Hypervisors } from '#operations/hypervisors/index.ts';
import { createIdempotency, type Idempotency } from '#operations/idempotency/index.ts';
import { createMetering, type Metering } from '#operations/metering/index.ts';
import { createNetworks, type Networks, type NetworksDeps } from '#operations/networks/index.ts';
import { createOrders, type Orders } from '#operations/orders/index.ts';
import {
  createGateway,
  createPayments,
  type Payments,
  type PaymentsDeps,
} from '#operations/payments/index.ts';
import { createProtectTraffic, type ProtectTraffic } from '#operations/protect-traffic/index.ts';
import { createServers, type Servers, type ServersDeps } from '#operations/servers/index.ts';
import { createWebhooks, type Webhooks, webhookSecrets } from '#operations/webhooks/index.ts';
import { type AuditTrail, createAuditTrail } from '#service-kit/audit/index.ts';
import { createPost, ownUrl, type Post } from '#service-kit/mail/index.ts';
import { createNotifications, type Notifications } from '#service-kit/notifications/index.ts';
import { createDatabase, type Database } from '#service-kit/postgres/index.ts';
import { createSecondFactors, factorSecrets, type SecondFactors } from '#service-kit/second-factors/index.ts';
import { createKeyWrapper, createSecrets, type Secrets } from '#service-kit/secrets/index.ts';
import { createBreachedPasswords, createSessions, type Sessions } from '#service-kit/sessions/index.ts';
import { type OperationsSettings, secretsKeyPrefix } from './config.ts';
import { createReceivers } from './receivers.ts';

export interface Features {
  database: Database;
  accounts: Accounts;
  addresses: Addresses;
  adminProjects: AdminProjects;
  apiKeys: ApiKeys;
  auditTrail: AuditTrail;
  billing: Billing;
  catalog: Catalog;
  clusters: Clusters;
  hypervisors: Hypervisors;
  idempotency: Idempotency;
  metering: Metering;
  bandwidth: Bandwidth;
  firewalls: Firewalls;
  firewallsDeps: FirewallsDeps;
  networks: Networks;
  notifications: Notifications;
  orders: Orders;
  payments: Payments;
  protectTraffic: ProtectTraffic;
  /** Of the feeds that monitors deliver. */
  receivers: readonly FeedReceiver[];
  servers: Servers;
  webhooks: Webhooks;
  /** Of people in portal and console. */
  sessions: Sessions;
  /** Mails to people. */
  post: Post;
  factors: SecondFactors;
  /** Sealed secrets; `secrets.part` starts after the database. */
  secrets: Secrets;
  /** What the reconciliation of charges works with. */
  paymentsDeps: PaymentsDeps;
  /** What the servers' background jobs work with. */
  serversDeps: ServersDeps;
  networksDeps: NetworksDeps;
  /** Set by the job runner: wakes it when a job is queued. */
  onWork: (listener: () => void) => void;
}

/** The program's own folder in the data directory. */
export function programDir(settings: OperationsSettings): string {
  return resolve(settings.dataDir, 'operations');
}

export function createOperationsDatabase(
  settings: OperationsSettings,
  reporter: Reporter,
  url = settings.databaseUrl,
): Database {
  return createDatabase({
    program: 'operations',
    urlSetting: 'SVC_OPERATIONS_DATABASE_URL',
    url,
    programDir: programDir(settings),
    migrations: fileURLToPath(new URL('./migrations', import.meta.url)),
    // Well beyond any wait of usual work, and short enough that one locked account never holds every connection.
    lockTimeoutMs: 5_000,
    reporter,
  });
}

/** Every column that holds a sealed secret. */
export const operationsSecrets = [...webhookSecrets, ...factorSecrets];

const gigabyteBytes = 1_000_000_000;

function bandwidthDepsOf(settings: OperationsSettings, db: BandwidthDeps['db']): BandwidthDeps {
  return {
    db,
    source: settings.bandwidthSource,
    poolCounts: settings.bandwidthPoolCounts,
    rules: {
      baseBytes: settings.bandwidthBaseGb * gigabyteBytes,
      perServerBytes: settings.bandwidthPerServerGb * gigabyteBytes,
      tenureYearBytes: settings.bandwidthTenureYearGb * gigabyteBytes,
      tenureBytesMax: settings.bandwidthTenureMaxGb * gigabyteBytes,
    },
  };
}

export async function createFeatures(
  settings: OperationsSettings,
  database: Database,
  reporter: Reporter,
): Promise<Features> {
  const clock = systemClock;
  const db = () => database.db;
  const pool = () => database.pool;
  const hypervisors = await createHypervisors({
    labSocket: settings.labSocket,
    simulatedGuestsFile: settings.simulatedGuests,
    db,
    clock,
  });
  const secrets = createSecrets({
    db,
    program: 'operations',
    columns: operationsSecrets,
    reporter,
    wrapper: createKeyWrapper({
      settingPrefix: secretsKeyPrefix,
      file: settings.secretsKeyFile,
      command: settings.secretsKeyCommand,
      programDir: programDir(settings),
    }),
  });
  const post = createPost({
    smtp: settings.smtpUrl === null ? null : { url: settings.smtpUrl, from: settings.smtpFrom },
    folder: settings.mailFolder,
    baseUrl: () => ownUrl(settings),
    reporter,
  });
  const catalog = createCatalog({ db });
  const addresses = createAddresses({ db });
  const gateway = await createGateway(
    {
      // Commands charge no card, so they need no choice; `serve` has refused to start without one.
      gateway: settings.paymentGateway ?? 'test',
      stripeSecretKey: settings.stripeSecretKey,
      stripeCallbackSecret: settings.stripeCallbackSecret,
      stripeUrl: settings.stripeUrl!,
    },
    { db, clock, reporter },
  );
  const paymentsDeps: PaymentsDeps = { db, gateway, reporter };
  const payments = createPayments(paymentsDeps);
  const orders = createOrders({ db, payments, deploysPerHour: settings.deploysPerHour });
  let wake = () => {};
  const clusters = createClusters({ db, hypervisors });
  const firewallsDeps: FirewallsDeps = { db, hypervisors, reporter, wake: () => wake() };
  const networksDeps: NetworksDeps = {
    db,
    catalog,
    clusters,
    hypervisors,
    reporter,
    networksMax: settings.networksMax,
    wake: () => wake(),
  };
  const networks = createNetworks(networksDeps);
  const serversDeps: ServersDeps = {
    db,
    pool,
    catalog,
    addresses,
    networks,
    hypervisors,
    orders,
    reporter,
    wake: () => wake(),
  };
  const protectTraffic = createProtectTraffic({
    db,
    addresses,
    isDocumentationGlobal: settings.allowDocumentationAddresses,
  });
  const receivers = createReceivers({ protectTraffic });
  return {
    database,
    accounts: createAccounts({
      db,
      post,
      revokeKeysOf,
      breached: createBreachedPasswords(settings.breachedPasswordsFile, 'SVC_BREACHED_PASSWORDS_FILE'),
    }),
    post,
    secrets,
    factors: createSecondFactors({ db, clock, secrets, issuer: 'svc' }),
    addresses,
    adminProjects: createAdminProjects({
      db,
      permissions: listPermissions(receivers),
      authFailuresMax: settings.adminAuthFailuresMax,
    }),
    auditTrail: createAuditTrail({ db }),
    apiKeys: createApiKeys({ db, pool, reporter }),
    billing: createBilling({ db, pool, gateway: payments.gatewayName }),
    catalog,
    clusters,
    hypervisors,
    idempotency: createIdempotency({ db }),
    notifications: createNotifications({ pool, channel: 'svc_operations' }),
    metering: createMetering({
      db,
      pool,
      reporter,
      includedPerMonth: settings.includedPerMonth,
      price: { unitRequests: settings.overageUnitRequests, rateQuanta: settings.overageRateQuanta },
    }),
    orders,
    payments,
    paymentsDeps,
    protectTraffic,
    receivers,
    bandwidth: createBandwidth(bandwidthDepsOf(settings, db)),
    firewalls: createFirewalls(firewallsDeps),
    firewallsDeps,
    networks,
    servers: createServers(serversDeps),
    webhooks: createWebhooks({ db, secrets, rules: { allowPrivate: settings.webhookPrivateTargets } }),
    sessions: createSessions({
      db,
      // Not the monitor's name: on one host, cookies do not tell ports apart.
      cookieName: 'svc_operations',
      isHttps: settings.publicUrl?.startsWith('https:') ?? false,
    }),
    serversDeps,
    networksDeps,
    onWork: (listener) => {
      wake = listener;
    },
  };
}
