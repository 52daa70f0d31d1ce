/**
 * The customer portal under `/client/`: servers, their traffic, keys.
 *
 * Every page acts as the signed-in person, and what they own is filtered where it is read: another customer's server
 * is, byte for byte, a page that does not exist.
 */
import type { Clock } from '#common/clock/index.ts';
import { hasCode } from '#common/errors/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { ApiKeys } from '#operations/api-keys/index.ts';
import type { Bandwidth } from '#operations/bandwidth/index.ts';
import type { Billing } from '#operations/billing/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { Firewalls } from '#operations/firewall/index.ts';
import type { Metering } from '#operations/metering/index.ts';
import type { Networks } from '#operations/networks/index.ts';
import type { Ordering } from '#operations/ordering/index.ts';
import type { Payments } from '#operations/payments/index.ts';
import type {
  ProtectFindings,
  ProtectIncidents,
  ProtectLive,
  ProtectScans,
  ProtectSettingsFeature,
  ProtectTraffic,
} from '#operations/protect/index.ts';
import type { SavedViews } from '#operations/saved-views/index.ts';
import type { ServerHistory } from '#operations/server-history/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { Webhooks } from '#operations/webhooks/index.ts';
import type { AuditTrail } from '#service-kit/audit/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import type { SecondFactors } from '#service-kit/second-factors/index.ts';
import type { Sessions } from '#service-kit/sessions/index.ts';
import { requireStepUp } from '#service-kit/sign-in/index.ts';
import type { ApiFacts } from '../parts/index.ts';
import { registerAccount } from './account/account.routes.ts';
import { registerActivity } from './account/activity.routes.ts';
import { registerSettings } from './account/settings.routes.ts';
import { registerBilling } from './billing/billing.routes.ts';
import { registerApiDocs } from './developer/api-docs.routes.ts';
import { registerDeveloper } from './developer/developer.routes.ts';
import { registerUsage } from './developer/usage.routes.ts';
import { registerWebhooks } from './developer/webhooks.routes.ts';
import { guardPortal } from './guard.ts';
import { registerNetworks } from './networks/networks.routes.ts';
import { registerPalette } from './palette/palette.routes.ts';
import { registerFindings } from './protect/findings.routes.ts';
import { registerIncidents } from './protect/incidents.routes.ts';
import { registerPorts } from './protect/ports.routes.ts';
import { registerProtect } from './protect/protect.routes.ts';
import { registerProtectSettings } from './protect/settings.routes.ts';
import { registerBandwidth } from './servers/bandwidth.routes.ts';
import { registerDeploy } from './servers/deploy.routes.ts';
import { registerFirewall } from './servers/firewall.routes.ts';
import { registerServerNetworks } from './servers/server-networks.routes.ts';
import { registerServerSettings } from './servers/server-settings.routes.ts';
import { registerServers } from './servers/servers.routes.ts';
import { registerAllTraffic } from './traffic/all-traffic.routes.ts';
import { registerLive } from './traffic/live.routes.ts';
import { registerTraffic } from './traffic/traffic.routes.ts';
import { registerTrafficFiles } from './traffic/traffic-files.routes.ts';

export interface PortalDeps {
  accounts: Accounts;
  apiFacts: ApiFacts;
  auditTrail: AuditTrail;
  apiKeys: ApiKeys;
  billing: Billing;
  catalog: Catalog;
  bandwidth: Bandwidth;
  firewalls: Firewalls;
  metering: Metering;
  networks: Networks;
  ordering: Ordering;
  payments: Payments;
  savedViews: SavedViews;
  sessions: Sessions;
  serverHistory: ServerHistory;
  servers: Servers;
  webhooks: Webhooks;
  protectIncidents: ProtectIncidents;
  protectSettings: ProtectSettingsFeature;
  protectTraffic: ProtectTraffic;
  protectLive: ProtectLive;
  protectScans: ProtectScans;
  protectFindings: ProtectFindings;
  clock: Clock;
  post: Post;
  factors: SecondFactors;
  /** Where customers reach us; null: as the request says. */
  publicUrl: string | null;
}

export async function registerPortal(app: App, deps: PortalDeps): Promise<void> {
  app.decorateRequest('visitor', null);
  await app.register(
    async (scope) => {
      const routes = scope as unknown as App;
      // Before the fields are validated: a form without permission gets no field errors.
      routes.addHook('preValidation', guardPortal(deps));
      requireStepUp(routes);
      routes.setErrorHandler((error) => {
        if (!hasCode(error, 'accounts.forbidden')) throw error;
        throw new HttpError(403, { code: 'forbidden', message: (error as Error).message });
      });
      // The portal's pages are no part of the API reference.
      routes.addHook('onRoute', (route) => {
        route.schema = { ...route.schema, hide: true } as typeof route.schema & { hide: boolean };
      });
      registerDeploy(routes, deps);
      registerPalette(routes, deps);
      registerServers(routes, deps);
      registerServerSettings(routes, deps);
      registerAllTraffic(routes, deps);
      registerTraffic(routes, deps);
      registerTrafficFiles(routes, deps);
      registerBilling(routes, deps);
      registerSettings(routes, deps);
      registerActivity(routes, deps);
      registerAccount(routes, deps);
      registerDeveloper(routes, deps);
      registerUsage(routes, deps);
      registerApiDocs(routes, deps);
      registerNetworks(routes, deps);
      registerServerNetworks(routes, deps);
      registerFirewall(routes, deps);
      registerBandwidth(routes, deps);
      registerWebhooks(routes, deps);
      registerProtect(routes, deps);
      registerLive(routes, deps);
      registerIncidents(routes, deps);
      registerPorts(routes, deps);
      registerFindings(routes, deps);
      registerProtectSettings(routes, deps);
    },
    { prefix: '/client' },
  );
}
