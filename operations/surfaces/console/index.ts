/**
 * The operators' console under `/console/`: attention items, customers, servers, the catalog and its clusters,
 * and the projects of the admin API.
 *
 * Staff only; all others get the 404 of a page that does not exist. Support reads all of it and changes nothing:
 * the operations refuse, and the pages show them no form.
 */
import { hasCode } from '#common/errors/index.ts';
import type { Features } from '#operations/features.ts';
import type { Demo } from '#service-kit/demo/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { registerCaughtMail } from '#service-kit/mail/index.ts';
import { requireStepUp } from '#service-kit/sign-in/index.ts';
import type { ApiFacts } from '../parts/index.ts';
import { registerAppearance } from './appearance/appearance.routes.ts';
import { registerAttacks } from './attacks/attacks.routes.ts';
import { registerCatalog } from './catalog/catalog.routes.ts';
import { registerClusters } from './clusters/clusters.routes.ts';
import { registerPools } from './clusters/pools.routes.ts';
import { registerCustomerChanges } from './customers/customer-changes.routes.ts';
import { registerCustomers } from './customers/customers.routes.ts';
import { registerApiDocs, registerWebhooks } from './developer/developer.routes.ts';
import { registerFindings } from './findings/findings.routes.ts';
import { guardConsole } from './guard.ts';
import { registerOverview } from './overview/overview.routes.ts';
import { registerPalette } from './palette/palette.routes.ts';
import { registerPortScans } from './port-scans/port-scans.routes.ts';
import { registerProjects } from './projects/projects.routes.ts';
import { registerReconciliation } from './reconciliation/reconciliation.routes.ts';
import { registerServer } from './servers/server.routes.ts';
import { registerServers } from './servers/servers.routes.ts';
import { registerFind, registerSignOnConsole, registerStaffSignOn } from './sign-on/sign-on.routes.ts';
import { registerAccount, registerAudit } from './staff/account.routes.ts';
import { registerStaff } from './staff/staff.routes.ts';
import { registerSystem } from './system/system.routes.ts';
import { registerTraffic } from './traffic/traffic.routes.ts';
import { registerUsage } from './usage/usage.routes.ts';

/** All features, and what the surface is set to. */
type ConsoleDeps = Features & {
  apiFacts: ApiFacts;
  /** Where people reach this program; null: as the request says. */
  publicUrl: string | null;
  /** The console requires a second factor. */
  requireSecondFactor: boolean;
  /** Mails of a demo, to show at `/dev/mail/`; null: none are caught. */
  caughtMailFolder: string | null;
  demo: Demo | null;
};

export async function registerConsole(app: App, deps: ConsoleDeps): Promise<void> {
  app.decorateRequest('staff', null);
  await app.register(
    async (scope) => {
      const routes = watchOver(scope as unknown as App, deps);
      registerOverview(routes, deps);
      registerPalette(routes, deps);
      registerCustomers(routes, deps);
      registerCustomerChanges(routes, deps);
      registerReconciliation(routes, deps);
      registerStaff(routes, deps);
      registerAudit(routes, deps);
      registerSystem(routes, deps);
      registerAppearance(routes, deps);
      registerAccount(routes, deps);
      registerServer(routes, deps);
      registerServers(routes, deps);
      registerTraffic(routes, deps);
      registerAttacks(routes, deps);
      registerPortScans(routes, deps);
      registerFindings(routes, deps);
      registerClusters(routes, deps);
      registerPools(routes, deps);
      registerCatalog(routes, deps);
      registerProjects(routes, deps);
      registerUsage(routes, deps);
      registerApiDocs(routes, deps);
      registerWebhooks(routes, deps);
      registerSignOnConsole(routes, deps);
    },
    { prefix: '/console' },
  );
  // Under the paths that both programs know.
  await app.register(async (scope) => {
    const routes = watchOver(scope as unknown as App, deps);
    registerStaffSignOn(routes, deps);
    registerFind(routes, deps);
    if (deps.caughtMailFolder !== null)
      registerCaughtMail(routes, {
        ...{ folder: deps.caughtMailFolder, area: 'Operations' },
        isOperator: (request) => request.staff!.canChange,
      });
  });
}

/** Lets only staff in. */
function watchOver(routes: App, deps: ConsoleDeps): App {
  // Before the fields are validated: a form without permission gets no field errors.
  routes.addHook('preValidation', guardConsole(deps));
  requireStepUp(routes);
  routes.setErrorHandler((error) => {
    if (!hasCode(error, 'accounts.forbidden')) throw error;
    throw new HttpError(403, { code: 'forbidden', message: (error as Error).message });
  });
  // The console's pages are no part of the API reference.
  routes.addHook('onRoute', (route) => {
    route.schema = { ...route.schema, hide: true } as typeof route.schema & { hide: boolean };
  });
  return routes;
}
