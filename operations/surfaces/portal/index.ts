/**
 * The customer portal under `/client/`: servers, their traffic, keys.
 *
 * Every page acts as the signed-in person, and what they own is filtered where it is read: another customer's server
 * is, byte for byte, a page that does not exist.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { ProtectTraffic } from '#operations/protect-traffic/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { Sessions } from '#service-kit/sessions/index.ts';
import { guardPortal } from './guard.ts';
import { registerProtect } from './protect.routes.ts';
import { registerServers } from './servers.routes.ts';

export interface PortalDeps {
  accounts: Accounts;
  sessions: Sessions;
  servers: Servers;
  protectTraffic: ProtectTraffic;
  clock: Clock;
}

export async function registerPortal(app: App, deps: PortalDeps): Promise<void> {
  app.decorateRequest('visitor', null);
  await app.register(
    async (scope) => {
      const routes = scope as unknown as App;
      routes.addHook('preHandler', guardPortal(deps));
      // The portal's pages are no part of the API reference.
      routes.addHook('onRoute', (route) => {
        route.schema = { ...route.schema, hide: true } as typeof route.schema & { hide: boolean };
      });
      registerServers(routes, deps);
      registerProtect(routes, deps);
    },
    { prefix: '/client' },
  );
}
