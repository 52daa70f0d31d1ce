/** The features of operations, wired to one another; inert until the database has been started. */
import { type Accounts, type Actor, createAccounts, requireOperator } from '#operations/accounts/index.ts';
import { createAddresses, releaseKeptAddresses } from '#operations/addresses/index.ts';
import { createAdminProjects } from '#operations/admin-projects/index.ts';
import { createApiKeys, revokeKeysOf } from '#operations/api-keys/index.ts';
import { createAttention } from '#operations/attention/index.ts';
import { type BandwidthDeps, createBandwidth } from '#operations/bandwidth/index.ts';
import { createBilling } from '#operations/billing/index.ts';
import { createBillingMaintenance } from '#operations/billing-maintenance/index.ts';
import { createCatalog } from '#operations/catalog/index.ts';
import { createClusters } from '#operations/clusters/index.ts';
import { createConsoles } from '#operations/consoles/index.ts';
import { createDestroyNotices } from '#operations/destroy-notices/index.ts';
import { listPermissions } from '#operations/feeds/index.ts';
import { createFirewalls } from '#operations/firewall/index.ts';
import { createGuards } from '#operations/guards/index.ts';
import { createHypervisors } from '#operations/hypervisors/index.ts';
import { createIdempotency } from '#operations/idempotency/index.ts';
import { createMetering } from '#operations/metering/index.ts';
import { createNetworks } from '#operations/networks/index.ts';
import { createOrdering, createOrders } from '#operations/ordering/index.ts';
import { createGateway, createPayments } from '#operations/payments/index.ts';
import {
  createProtectFindings,
  createProtectIncidents,
  createProtectLive,
  createProtectScans,
  createProtectSettings,
  createProtectTraffic,
} from '#operations/protect/index.ts';
import { createReverseDns, readReverseDns } from '#operations/reverse-dns/index.ts';
import { createSavedViews } from '#operations/saved-views/index.ts';
import { createServerChanges } from '#operations/server-changes/index.ts';
import { createServerHistory } from '#operations/server-history/index.ts';
import { createServers, lockAttachable } from '#operations/servers/index.ts';
import { createSshKeys } from '#operations/ssh-keys/index.ts';
import { createWebhooks } from '#operations/webhooks/index.ts';
import { createOidc } from '#service-kit/oidc/index.ts';
import { readOidc } from '#service-kit/oidc/settings.ts';
import { createBreachedPasswords } from '#service-kit/sessions/index.ts';
import { createSignOn, type SignOn } from '#service-kit/sign-on/index.ts';
import type { OperationsSettings } from './config.ts';
import type { Overrides } from './overrides.ts';
import type { Platform } from './platform.ts';
import { createReceivers } from './receivers.ts';

/** Servers and what they run on. */
type Infrastructure = Awaited<ReturnType<typeof createInfrastructure>>;

export type Features = Awaited<ReturnType<typeof createFeatures>>;

/** Wires the features to one another. */
export async function createFeatures(platform: Platform, overrides: Overrides) {
  const infrastructure = await createInfrastructure(platform, overrides);
  const customers = createCustomers(platform, infrastructure, overrides);
  const signOn = createStaffSignOn(platform, customers.accounts);
  const all = { ...platform, ...infrastructure, ...customers };
  // What operators are mailed.
  const attention = createAttention(all);
  const provider = readOidc(platform.settings);
  const oidc = createOidc({ db: platform.db, provider, staff: customers.accounts.staff });
  return { ...all, attention, consoles: createConsoles(all), signOn, oidc };
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

async function createInfrastructure(platform: Platform, overrides: Overrides) {
  const { settings, db, clock, reporter, wake, post } = platform;
  const hypervisors =
    overrides.hypervisors?.({ db }) ??
    (await createHypervisors({
      labSocket: settings.labSocket,
      simulatedGuestsFile: settings.simulatedGuests,
      db,
      clock,
    }));
  const catalog = createCatalog({ db });
  const addresses = createAddresses({ db, hypervisors, addressesMax: settings.addressesMax });
  const clusters = createClusters({ db, hypervisors, catalog });
  const made = await createGateway(settings, { db, clock });
  const gateway = overrides.gateway?.(made) ?? made;
  const payments = createPayments({ db, gateway, clock, reporter });
  const base = { db, clock, reporter, wake, hypervisors, clusters, catalog };
  // Servers stands above networks, and ordering above servers, so these doors are handed down and across.
  const networks = createNetworks({ ...base, lockServer: lockAttachable, networksMax: settings.networksMax });
  const dnsServers =
    overrides.reverseDns ?? (await readReverseDns(settings.reverseDnsFile, settings.allowInsecureHttp));
  const sshKeys = createSshKeys({ db });
  const orders = createOrders({ db, payments, deploysPerHour: settings.deploysPerHour });
  const { findRootPassword } = orders;
  return {
    addresses,
    catalog,
    clusters,
    /** What charges go through. */
    gateway,
    hypervisors,
    networks,
    ordering: createOrdering({ ...base, networks, orders, sshKeys }),
    payments,
    bandwidth: createBandwidth({ ...base, post, ...bandwidthRules(settings) }),
    destroyNotices: createDestroyNotices({ db, clock, reporter, monitor: noticeMonitor(settings) }),
    firewalls: createFirewalls(base),
    guards: createGuards(base),
    reverseDns: createReverseDns({ db, reporter, wake, ...dnsServers }),
    serverChanges: createServerChanges({ db, clock, reporter }),
    serverHistory: createServerHistory({ db }),
    sshKeys,
    servers: createServers({
      ...{ ...base, addresses, networks, findRootPassword },
      snapshotsMax: settings.snapshotsMax,
      snapshotGbQuanta: settings.snapshotGbQuanta,
    }),
  };
}

function createCustomers(
  platform: Platform,
  { addresses, bandwidth, payments, servers }: Infrastructure,
  overrides: Overrides,
) {
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
  const apiKeys = createApiKeys({ db, pool, reporter, gateway: payments.gatewayName });
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
    /** Of the feeds that monitors deliver. */
    receivers,
    savedViews: createSavedViews({ db }),
    accounts: createAccounts({
      db,
      post,
      revokeKeysOf,
      releaseKeptAddresses,
      breached: createBreachedPasswords(settings.breachedPasswordsFile, 'SVC_BREACHED_PASSWORDS_FILE'),
    }),
    adminProjects: overrides.adminProjects?.(adminProjects) ?? adminProjects,
    apiKeys: overrides.apiKeys?.(apiKeys) ?? apiKeys,
    billing: createBilling({ db, pool, gateway: payments.gatewayName }),
    billingMaintenance: createBillingMaintenance({ ...base, metering, bandwidth, servers }),
    idempotency: overrides.idempotency?.(idempotency) ?? idempotency,
    metering,
    webhooks: createWebhooks({ ...base, secrets, rules: { allowPrivate: settings.webhookPrivateTargets } }),
  };
}

const gigabyteBytes = 1_000_000_000;

function bandwidthRules(
  settings: OperationsSettings,
): Pick<BandwidthDeps, 'source' | 'poolCounts' | 'rules' | 'tbQuanta' | 'limitMbit'> {
  return {
    source: settings.bandwidthSource,
    poolCounts: settings.bandwidthPoolCounts,
    tbQuanta: settings.bandwidthOverageQuanta,
    limitMbit: settings.bandwidthOverageQuanta === 0 ? 0 : settings.bandwidthLimitMbit,
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
