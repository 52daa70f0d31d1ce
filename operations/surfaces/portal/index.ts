/**
 * The customer portal under `/client/`: servers, their traffic, keys.
 *
 * Every page acts as the signed-in person, and what they own is filtered where it is read: another customer's server
 * is, byte for byte, a page that does not exist.
 */
import { hasCode } from '#common/errors/index.ts';
import type { Features } from '#operations/features.ts';
import type { Demo } from '#service-kit/demo/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { requireStepUp } from '#service-kit/sign-in/index.ts';
import type { ApiFacts } from '../parts/index.ts';
import { registerAccount, registerActivity } from './account/account.routes.ts';
import { registerSettings } from './account/settings.routes.ts';
import { registerBilling } from './billing/billing.routes.ts';
import { registerApiDocs } from './developer/api-docs.routes.ts';
import { registerDeveloper } from './developer/developer.routes.ts';
import { registerSshKeys } from './developer/ssh-keys.routes.ts';
import { registerUsage } from './developer/usage.routes.ts';
import { registerWebhooks } from './developer/webhooks.routes.ts';
import { guardPortal } from './guard.ts';
import { registerAddresses } from './networks/addresses.routes.ts';
import { registerNetworks } from './networks/networks.routes.ts';
import { registerPalette } from './palette/palette.routes.ts';
import { registerFindings } from './protect/findings.routes.ts';
import { registerIncidents } from './protect/incidents.routes.ts';
import { registerPorts } from './protect/ports.routes.ts';
import { registerProtect } from './protect/protect.routes.ts';
import { registerProtectSettings } from './protect/settings.routes.ts';
import { registerConsole } from './servers/console.routes.ts';
import { registerDeploy } from './servers/deploy.routes.ts';
import { registerFirewall } from './servers/firewall.routes.ts';
import { registerServer } from './servers/server.routes.ts';
import { registerServerNetworks } from './servers/server-networks.routes.ts';
import { registerMachine, registerServerSettings } from './servers/server-settings.routes.ts';
import { registerAttack, registerServers } from './servers/servers.routes.ts';
import { registerSnapshots } from './servers/snapshots.routes.ts';
import { registerLive } from './traffic/live.routes.ts';
import { registerAllTraffic, registerBandwidth, registerTraffic } from './traffic/traffic.routes.ts';
import { registerTrafficFiles } from './traffic/traffic-files.routes.ts';

export async function registerPortal(
  app: App,
  deps: Features & {
    apiFacts: ApiFacts;
    /** Where customers reach us; null: as the request says. */
    publicUrl: string | null;
    demo: Demo | null;
  },
): Promise<void> {
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
      registerServer(routes, deps);
      registerServers(routes, deps);
      if (deps.demo?.attack) registerAttack(routes, { ...deps, attack: deps.demo.attack });
      registerServerSettings(routes, deps);
      registerMachine(routes, deps);
      registerSnapshots(routes, deps);
      registerConsole(routes, deps);
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
      registerAddresses(routes, deps);
      registerServerNetworks(routes, deps);
      registerFirewall(routes, deps);
      registerBandwidth(routes, deps);
      registerWebhooks(routes, deps);
      registerSshKeys(routes, deps);
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
