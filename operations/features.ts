/** The features of operations, wired to one another; inert until the database has been started. */
import { type Accounts, createAccounts } from '#operations/accounts/index.ts';
import { type Addresses, createAddresses } from '#operations/addresses/index.ts';
import { type AdminProjects, createAdminProjects } from '#operations/admin-projects/index.ts';
import { type ApiKeys, createApiKeys, revokeKeysOf } from '#operations/api-keys/index.ts';
import { type Bandwidth, type BandwidthDeps, createBandwidth } from '#operations/bandwidth/index.ts';
import { type Billing, createBilling } from '#operations/billing/index.ts';
import { type Catalog, createCatalog } from '#operations/catalog/index.ts';
import { type Clusters, createClusters } from '#operations/clusters/index.ts';
import { type FeedReceiver, listPermissions } from '#operations/feeds/index.ts';
import { createFirewalls, type Firewalls, firewallJobs } from '#operations/firewall/index.ts';
import { createHypervisors, type Hypervisors } from '#operations/hypervisors/index.ts';
import { createIdempotency, type Idempotency } from '#operations/idempotency/index.ts';
import { createMetering, type Metering } from '#operations/metering/index.ts';
import { createNetworks, type Networks, networkJobs } from '#operations/networks/index.ts';
import {
  createOrdering,
  createOrders,
  type Ordering,
  type OrderingDeps,
} from '#operations/ordering/index.ts';
import {
  createGateway,
  createPayments,
  type Payments,
  type PaymentsDeps,
} from '#operations/payments/index.ts';
import { createProtectTraffic, type ProtectTraffic } from '#operations/protect/index.ts';
import {
  createServers,
  lockAttachable,
  type Servers,
  type ServersDeps,
  serverJobs,
} from '#operations/servers/index.ts';
import { createWebhooks, type Webhooks } from '#operations/webhooks/index.ts';
import type { JobHandler } from '#service-kit/jobs/index.ts';
import { createBreachedPasswords } from '#service-kit/sessions/index.ts';
import type { OperationsSettings } from './config.ts';
import type { Overrides } from './overrides.ts';
import type { Platform } from './platform.ts';
import { createReceivers } from './receivers.ts';

/** Servers and what they run on. */
interface Infrastructure {
  addresses: Addresses;
  catalog: Catalog;
  clusters: Clusters;
  hypervisors: Hypervisors;
  bandwidth: Bandwidth;
  firewalls: Firewalls;
  networks: Networks;
  ordering: Ordering;
  payments: Payments;
  servers: Servers;
  /** What the reconciliation of charges works with. */
  paymentsDeps: PaymentsDeps;
  /** What the loops of ordering work with. */
  orderingDeps: OrderingDeps;
  /** What the servers' background jobs work with. */
  serversDeps: ServersDeps;
  /** Of durable jobs, by kind: what features want done in the background. */
  jobHandlers: Readonly<Record<string, JobHandler>>;
}

/** Customers, what they are charged, and the programs that call for them. */
interface Customers {
  accounts: Accounts;
  adminProjects: AdminProjects;
  apiKeys: ApiKeys;
  billing: Billing;
  idempotency: Idempotency;
  metering: Metering;
  protectTraffic: ProtectTraffic;
  /** Of the feeds that monitors deliver. */
  receivers: readonly FeedReceiver[];
  webhooks: Webhooks;
}

export interface Features extends Platform, Infrastructure, Customers {}

/** Wires the features to one another. */
export async function createFeatures(platform: Platform, overrides: Overrides): Promise<Features> {
  const infrastructure = await createInfrastructure(platform, overrides);
  return { ...platform, ...infrastructure, ...createCustomers(platform, infrastructure, overrides) };
}

async function createInfrastructure(platform: Platform, overrides: Overrides): Promise<Infrastructure> {
  const { settings, db, pool, clock, reporter, wake } = platform;
  const base = { db, pool, reporter, wake };
  const hypervisors =
    overrides.hypervisors?.({ db }) ??
    (await createHypervisors({
      labSocket: settings.labSocket,
      simulatedGuestsFile: settings.simulatedGuests,
      db,
      clock,
    }));
  const catalog = createCatalog(base);
  const addresses = createAddresses(base);
  const clusters = createClusters({ db, hypervisors });
  const gateway = await createGateway(gatewaySettings(settings), { db, clock, reporter });
  const paymentsDeps: PaymentsDeps = { db, gateway: overrides.gateway?.(gateway) ?? gateway, reporter };
  const payments = createPayments(paymentsDeps);
  const orders = createOrders({ db, payments, deploysPerHour: settings.deploysPerHour });
  const firewallsDeps = { ...base, hypervisors };
  const networksDeps = {
    ...firewallsDeps,
    catalog,
    clusters,
    // Servers stands above networks, so its door is handed down.
    lockServer: lockAttachable,
    networksMax: settings.networksMax,
  };
  const networks = createNetworks(networksDeps);
  const { findRootPassword } = orders;
  const serversDeps: ServersDeps = { ...firewallsDeps, catalog, addresses, networks, findRootPassword };
  const orderingDeps: OrderingDeps = { ...firewallsDeps, catalog, networks, orders, clock };
  return {
    addresses,
    catalog,
    clusters,
    hypervisors,
    networks,
    ordering: createOrdering(orderingDeps),
    orderingDeps,
    payments,
    paymentsDeps,
    serversDeps,
    bandwidth: createBandwidth(bandwidthDeps(settings, db)),
    firewalls: createFirewalls(firewallsDeps),
    servers: createServers(serversDeps),
    jobHandlers: {
      ...serverJobs(serversDeps),
      ...networkJobs(networksDeps),
      ...firewallJobs(firewallsDeps),
    },
  };
}

function createCustomers(
  platform: Platform,
  { addresses, payments }: Infrastructure,
  overrides: Overrides,
): Customers {
  const { settings, db, pool, reporter, post, secrets } = platform;
  const protectTraffic = createProtectTraffic({
    db,
    addresses,
    isDocumentationGlobal: settings.allowDocumentationAddresses,
  });
  const receivers = [...createReceivers({ protectTraffic }), ...(overrides.receivers ?? [])];
  const adminProjects = createAdminProjects({
    db,
    permissions: listPermissions(receivers),
    authFailuresMax: settings.adminAuthFailuresMax,
  });
  const apiKeys = createApiKeys({ db, pool, reporter });
  const idempotency = createIdempotency({ db });
  return {
    protectTraffic,
    receivers,
    accounts: createAccounts({
      db,
      post,
      revokeKeysOf,
      breached: createBreachedPasswords(settings.breachedPasswordsFile, 'SVC_BREACHED_PASSWORDS_FILE'),
    }),
    adminProjects: overrides.adminProjects?.(adminProjects) ?? adminProjects,
    apiKeys: overrides.apiKeys?.(apiKeys) ?? apiKeys,
    billing: createBilling({ db, pool, gateway: payments.gatewayName }),
    idempotency: overrides.idempotency?.(idempotency) ?? idempotency,
    metering: createMetering({
      db,
      pool,
      reporter,
      includedPerMonth: settings.includedPerMonth,
      price: { unitRequests: settings.overageUnitRequests, rateQuanta: settings.overageRateQuanta },
      lockTimeoutMs: overrides.countLockTimeoutMs,
    }),
    webhooks: createWebhooks({ db, secrets, rules: { allowPrivate: settings.webhookPrivateTargets } }),
  };
}

function gatewaySettings(settings: OperationsSettings) {
  return {
    // Commands charge no card, so they need no choice; `serve` has refused to start without one.
    gateway: settings.paymentGateway ?? ('test' as const),
    stripeSecretKey: settings.stripeSecretKey,
    stripeCallbackSecret: settings.stripeCallbackSecret,
    stripeUrl: settings.stripeUrl!,
  };
}

const gigabyteBytes = 1_000_000_000;

function bandwidthDeps(settings: OperationsSettings, db: BandwidthDeps['db']): BandwidthDeps {
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
