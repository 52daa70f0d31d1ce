/** The monitor's HTTP server: health, sensor API, console. */
import { createHttpServer, type HttpServer } from '#service-kit/http/index.ts';
import { registerAssets } from '#service-kit/pages/index.ts';
import type { Monitor } from './composition.ts';
import type { MonitorConfig } from './config.ts';
import { monitorErrorPage, registerConsole } from './surfaces/console/index.ts';
import { registerSensorApi } from './surfaces/sensor-api/index.ts';

export function createMonitorServer(config: MonitorConfig, monitor: Monitor): Promise<HttpServer> {
  return createHttpServer({
    host: config.host,
    port: config.port,
    portSetting: 'SVC_MONITOR_PORT',
    reporter: monitor.reporter,
    errorPage: monitorErrorPage,
    async routes(app) {
      app.get('/healthz', async () => ({ status: 'alive' }));
      app.get('/readyz', async () => {
        await monitor.sites.list();
        return { status: 'ready' };
      });
      await registerSensorApi(app, monitor);
      registerAssets(app);
      await registerConsole(app, { ...monitor, monitorUrl: () => config.publicUrl });
    },
  });
}
