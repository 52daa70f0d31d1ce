/** The features of operations, wired to one another; inert until the database has been started. */
import { type Accounts, type Actor, createAccounts, requireOperator } from '#operations/accounts/index.ts';
import { type Addresses, createAddresses } from '#operations/addresses/index.ts';
import { type AdminProjects, createAdminProjects } from '#operations/admin-projects/index.ts';
import { type ApiKeys, createApiKeys, revokeKeysOf } from '#operations/api-keys/index.ts';
import { createAttention } from '#operations/attention/index.ts';
import { type Bandwidth, type BandwidthDeps, createBandwidth } from '#operations/bandwidth/index.ts';
import { type Billing, createBilling } from '#operations/billing/index.ts';
import { createBillingMaintenance } from '#operations/billing-maintenance/index.ts';
import { type Catalog, createCatalog } from '#operations/catalog/index.ts';
import { type Clusters, createClusters } from '#operations/clusters/index.ts';
import { createDestroyNotices } from '#operations/destroy-notices/index.ts';
import { type FeedReceiver, listPermissions } from '#operations/feeds/index.ts';
import { createFirewalls, type Firewalls } from '#operations/firewall/index.ts';
import { createHypervisors, type Hypervisors } from '#operations/hypervisors/index.ts';
import { createIdempotency, type Idempotency } from '#operations/idempotency/index.ts';
import { createMetering, type Metering } from '#operations/metering/index.ts';
import { createNetworks, type Networks } from '#operations/networks/index.ts';
import { createOrdering, createOrders, type Ordering } from '#operations/ordering/index.ts';
import {
  createGateway,
  createPayments,
  type PaymentGateway,
  type Payments,
} from '#operations/payments/index.ts';
import {
  createProtectFindings,
  createProtectIncidents,
  createProtectLive,
  createProtectScans,
  createProtectSettings,
  createProtectTraffic,
  type ProtectFindings,
  type ProtectIncidents,
  type ProtectLive,
  type ProtectScans,
  type ProtectSettingsFeature,
  type ProtectTraffic,
} from '#operations/protect/index.ts';
import { createSavedViews, type SavedViews } from '#operations/saved-views/index.ts';
import { createServerChanges, type ServerChanges } from '#operations/server-changes/index.ts';
import { createServerHistory, type ServerHistory } from '#operations/server-history/index.ts';
import { createServers, lockAttachable, type Servers } from '#operations/servers/index.ts';
import { createWebhooks, type Webhooks } from '#operations/webhooks/index.ts';
import { createBreachedPasswords } from '#service-kit/sessions/index.ts';
import { createSignOn, type SignOn } from '#service-kit/sign-on/index.ts';
import type { OperationsSettings } from './config.ts';
import type { Overrides } from './overrides.ts';
import type { Platform } from './platform.ts';
import { createReceivers } from './receivers.ts';

/** Servers and what they run on. */
interface Infrastructure {
  addresses: Addresses;
  catalog: Catalog;
  clusters: Clusters;
  destroyNotices: ReturnType<typeof createDestroyNotices>;
  /** What charges go through. */
  gateway: PaymentGateway;
  hypervisors: Hypervisors;
  bandwidth: Bandwidth;
  firewalls: Firewalls;
  networks: Networks;
  ordering: Ordering;
  payments: Payments;
  serverChanges: ServerChanges;
  serverHistory: ServerHistory;
  servers: Servers;
}

/** Customers, what they are charged, and the programs that call for them. */
interface Customers {
  accounts: Accounts;
  adminProjects: AdminProjects;
  apiKeys: ApiKeys;
  billing: Billing;
  billingMaintenance: ReturnType<typeof createBillingMaintenance>;
  idempotency: Idempotency;
  metering: Metering;
  protectIncidents: ProtectIncidents;
  protectSettings: ProtectSettingsFeature;
  protectTraffic: ProtectTraffic;
  protectLive: ProtectLive;
  protectScans: ProtectScans;
  protectFindings: ProtectFindings;
  /** Of the feeds that monitors deliver. */
  receivers: readonly FeedReceiver[];
  savedViews: SavedViews;
  webhooks: Webhooks;
}

export interface Features extends Platform, Infrastructure, Customers {
  /** What operators are mailed. */
  attention: ReturnType<typeof createAttention>;
  /** Of staff, with the monitor's console. */
  signOn: SignOn<Actor>;
}

/** Wires the features to one another. */
export async function createFeatures(platform: Platform, overrides: Overrides): Promise<Features> {
  const infrastructure = await createInfrastructure(platform, overrides);
  const customers = createCustomers(platform, infrastructure, overrides);
  const signOn = createStaffSignOn(platform, customers.accounts);
  const all = { ...platform, ...infrastructure, ...customers };
  return { ...all, attention: createAttention(all), signOn };
}

/** Customers have no account at the monitor, so a sign-on never starts a session of one. */
function createStaffSignOn({ settings, db, clock, secrets }: Platform, accounts: Accounts): SignOn<Actor> {
  return createSignOn<Actor>({
    ...{ db, clock, secrets, requireOperator, allowsInsecureHttp: settings.allowInsecureHttp },
    async findOperator(personId) {
      const isStaff = (await accounts.staffActorOf(personId)) !== null;
      return isStaff ? accounts.findPerson(personId) : null;
    },
  });
}

async function createInfrastructure(platform: Platform, overrides: Overrides): Promise<Infrastructure> {
  const { settings, db, clock, reporter, wake } = platform;
  const hypervisors =
    overrides.hypervisors?.({ db }) ??
    (await createHypervisors({
      labSocket: settings.labSocket,
      simulatedGuestsFile: settings.simulatedGuests,
      db,
      clock,
    }));
  const catalog = createCatalog({ db });
  const addresses = createAddresses({ db });
  const clusters = createClusters({ db, hypervisors });
  const made = await createGateway(settings, { db, clock });
  const gateway = overrides.gateway?.(made) ?? made;
  const payments = createPayments({ db, gateway, clock, reporter });
  const base = { db, clock, reporter, wake, hypervisors, clusters, catalog };
  // Servers stands above networks, and ordering above servers, so these doors are handed down and across.
  const networks = createNetworks({ ...base, lockServer: lockAttachable, networksMax: settings.networksMax });
  const orders = createOrders({ db, payments, deploysPerHour: settings.deploysPerHour });
  const { findRootPassword } = orders;
  return {
    addresses,
    catalog,
    clusters,
    gateway,
    hypervisors,
    networks,
    ordering: createOrdering({ ...base, networks, orders }),
    payments,
    bandwidth: createBandwidth({ ...base, ...bandwidthRules(settings) }),
    destroyNotices: createDestroyNotices({ db, clock, reporter, monitor: noticeMonitor(settings) }),
    firewalls: createFirewalls(base),
    serverChanges: createServerChanges({ db, clock, reporter }),
    serverHistory: createServerHistory({ db }),
    servers: createServers({ ...base, addresses, networks, findRootPassword }),
  };
}

function createCustomers(
  platform: Platform,
  { addresses, payments }: Infrastructure,
  overrides: Overrides,
): Customers {
  const { settings, db, pool, clock, reporter, post, secrets } = platform;
  const base = { db, clock, reporter };
  const ofProtect = { ...base, addresses, isDocumentationGlobal: settings.allowDocumentationAddresses };
  const protectTraffic = createProtectTraffic(ofProtect);
  const protectIncidents = createProtectIncidents({ ...ofProtect, post });
  const protectLive = createProtectLive(ofProtect);
  const protectScans = createProtectScans({ ...ofProtect, post });
  const protectFindings = createProtectFindings({ ...ofProtect, post });
  const receivers = [
    ...createReceivers({ protectTraffic, protectLive, protectIncidents, protectScans, protectFindings }),
    ...(overrides.receivers ?? []),
  ];
  const adminProjects = createAdminProjects({
    db,
    permissions: listPermissions(receivers),
    authFailuresMax: settings.adminAuthFailuresMax,
  });
  const apiKeys = createApiKeys({ db, pool, reporter });
  const idempotency = createIdempotency(base);
  const metering = createMetering({
    ...base,
    pool,
    includedPerMonth: settings.includedPerMonth,
    price: { unitRequests: settings.overageUnitRequests, rateQuanta: settings.overageRateQuanta },
    lockTimeoutMs: overrides.countLockTimeoutMs,
  });
  return {
    protectIncidents,
    protectSettings: createProtectSettings({
      db,
      onViewsOff: (tx, serverId) => protectScans.cancelQueued(tx, serverId),
    }),
    protectTraffic,
    protectLive,
    protectScans,
    protectFindings,
    receivers,
    savedViews: createSavedViews({ db }),
    accounts: createAccounts({
      db,
      post,
      revokeKeysOf,
      breached: createBreachedPasswords(settings.breachedPasswordsFile, 'SVC_BREACHED_PASSWORDS_FILE'),
    }),
    adminProjects: overrides.adminProjects?.(adminProjects) ?? adminProjects,
    apiKeys: overrides.apiKeys?.(apiKeys) ?? apiKeys,
    billing: createBilling({ db, pool, gateway: payments.gatewayName }),
    billingMaintenance: createBillingMaintenance({ ...base, metering }),
    idempotency: overrides.idempotency?.(idempotency) ?? idempotency,
    metering,
    webhooks: createWebhooks({ ...base, secrets, rules: { allowPrivate: settings.webhookPrivateTargets } }),
  };
}

const gigabyteBytes = 1_000_000_000;

function bandwidthRules(
  settings: OperationsSettings,
): Pick<BandwidthDeps, 'source' | 'poolCounts' | 'rules'> {
  return {
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

/** The monitor that is told of destroyed servers; null where none is set up. */
function noticeMonitor({ noticeUrl: url, noticeSecret: secret, allowInsecureHttp }: OperationsSettings) {
  if (url === null || secret === null) return null;
  return { url, secret, allowsInsecureHttp: allowInsecureHttp };
}
