/** The HTTP server of operations: which surface is served where. */
import { systemClock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { registerCustomerApi } from '#operations/surfaces/customer-api/index.ts';
import { registerPublic } from '#operations/surfaces/public/index.ts';
import { createHttpServer, type HttpServer } from '#service-kit/http/index.ts';
import type { OperationsSettings } from './config.ts';
import type { Features } from './features.ts';

export function createServer(
  settings: OperationsSettings,
  features: Features,
  reporter: Reporter,
): Promise<HttpServer> {
  return createHttpServer({
    host: settings.host,
    port: settings.port,
    portSetting: 'SVC_OPERATIONS_PORT',
    reporter,
    async routes(app) {
      await registerPublic(app, { isDatabaseReady: async () => void (await features.database.pool.query('select 1')) });
      await registerCustomerApi(app, {
        ...features,
        clock: systemClock,
        requestsPerMinute: settings.requestsPerMinute,
        authFailuresMax: settings.authFailuresMax,
      });
    },
  });
}
