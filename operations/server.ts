/** The HTTP server of operations: which surface is served where. */
import { systemClock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { registerAdminApi } from '#operations/surfaces/admin-api/index.ts';
import { registerConsole } from '#operations/surfaces/console/index.ts';
import { registerCustomerApi } from '#operations/surfaces/customer-api/index.ts';
import { registerPortal } from '#operations/surfaces/portal/index.ts';
import { registerPublic, renderErrorPage } from '#operations/surfaces/public/index.ts';
import { createHttpServer, type HttpServer } from '#service-kit/http/index.ts';
import { registerCaughtMail } from '#service-kit/mail/index.ts';
import { registerAssets, registerGallery } from '#service-kit/pages/index.ts';
import type { OperationsSettings } from './config.ts';
import type { Features } from './features.ts';

export function createServer(
  settings: OperationsSettings,
  features: Features,
  reporter: Reporter,
): Promise<HttpServer> {
  const surfaces = {
    ...features,
    clock: systemClock,
    apiFacts: { ...settings, origin: settings.publicUrl },
  };
  return createHttpServer({
    host: settings.host,
    port: settings.port,
    portSetting: 'SVC_OPERATIONS_PORT',
    trustedProxies: settings.trustedProxies,
    isHttps: settings.publicUrl?.startsWith('https:') ?? false,
    reporter,
    errorPage: renderErrorPage,
    async routes(app) {
      registerAssets(app);
      // The gallery is for page development; production does not serve it.
      if (settings.demoWorld) registerGallery(app);
      if (settings.demoWorld && settings.mailFolder !== null)
        registerCaughtMail(app, { folder: settings.mailFolder, area: 'Operations' });
      await registerPublic(app, {
        ...surfaces,
        db: () => features.database.db,
        publicUrl: settings.publicUrl,
        isDatabaseReady: async () => void (await features.database.pool.query('select 1')),
      });
      await registerCustomerApi(app, {
        ...features,
        clock: systemClock,
        requestsPerMinute: settings.requestsPerMinute,
        authFailuresMax: settings.authFailuresMax,
      });
      await registerAdminApi(app, {
        ...features,
        isDocumentationGlobal: settings.allowDocumentationAddresses,
      });
      await registerPortal(app, { ...surfaces, publicUrl: settings.publicUrl });
      await registerConsole(app, {
        ...surfaces,
        publicUrl: settings.publicUrl,
        requireSecondFactor: settings.requireSecondFactor,
      });
    },
  });
}
