/** The HTTP server of operations: which surface is served where. */
import { systemClock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { registerAdminApi } from '#operations/surfaces/admin-api/index.ts';
import { registerCustomerApi } from '#operations/surfaces/customer-api/index.ts';
import { registerPortal } from '#operations/surfaces/portal/index.ts';
import {
  registerApiDocs,
  registerHealth,
  registerPublicPages,
  renderErrorPage,
} from '#operations/surfaces/public/index.ts';
import { createHttpServer, type HttpServer } from '#service-kit/http/index.ts';
import { registerAssets } from '#service-kit/pages/index.ts';
import { createSessions } from '#service-kit/sessions/index.ts';
import type { OperationsSettings } from './config.ts';
import type { Features } from './features.ts';

export function createServer(
  settings: OperationsSettings,
  features: Features,
  reporter: Reporter,
): Promise<HttpServer> {
  const clock = systemClock;
  const sessions = createSessions({
    db: () => features.database.db,
    cookieName: 'svc_operations',
    isHttps: settings.isHttps,
  });
  return createHttpServer({
    host: settings.host,
    port: settings.port,
    portSetting: 'SVC_OPERATIONS_PORT',
    reporter,
    errorPage: renderErrorPage,
    async routes(app) {
      registerPublicPages(app, { ...features, sessions });
      registerHealth(app, { askDatabase: () => features.database.pool.query('select 1') });
      registerApiDocs(app);
      registerAssets(app);
      await registerCustomerApi(app, {
        ...features,
        clock,
        requestsPerMinute: settings.requestsPerMinute,
        authFailuresMax: settings.authFailuresMax,
      });
      await registerAdminApi(app, {
        ...features,
        isDocumentationGlobal: settings.allowDocumentationAddresses,
      });
      await registerPortal(app, { ...features, sessions, clock });
    },
  });
}
