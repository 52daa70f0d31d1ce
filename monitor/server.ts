/** The monitor's HTTP server: liveness and metrics, sensor API, destroy notices, console. */
import { systemClock } from '#common/clock/index.ts';
import { noticePath } from '#contracts/destroy-notice/index.ts';
import { demoOf } from '#service-kit/demo/index.ts';
import { createHttpServer, type HostRules, type HttpServer, healthPaths } from '#service-kit/http/index.ts';
import { registerAssets, registerGallery } from '#service-kit/pages/index.ts';
import { readProvider, useProvider } from '#service-kit/pages/provider.ts';
import { demoRolesOf } from '#service-kit/sign-in/index.ts';
import type { MonitorConfig } from './config.ts';
import type { Features } from './features.ts';
import { monitorErrorPage, registerConsole } from './surfaces/console/index.ts';
import { registerHealth } from './surfaces/health/index.ts';
import { registerNotices } from './surfaces/notices/index.ts';
import { registerReadApi } from './surfaces/read-api/index.ts';
import { registerSensorApi } from './surfaces/sensor-api/index.ts';

export function createMonitorServer(
  config: MonitorConfig,
  monitor: Features & { roles: ReadonlySet<string> },
): Promise<HttpServer> {
  useProvider(readProvider(config));
  return createHttpServer({
    host: config.host,
    port: config.port,
    portSetting: 'SVC_MONITOR_PORT',
    hosts: hostRules(config),
    trustedProxies: config.trustedProxies,
    connectionsMax: config.connectionsMax,
    isHttps: config.publicUrl?.startsWith('https:') ?? false,
    reporter: monitor.reporter,
    errorPage: monitorErrorPage,
    async routes(app) {
      const program = { isDemo: config.isDemoWorld, host: config.host, attack: config.demoAttack };
      registerHealth(app, { ...monitor, metricsToken: config.metricsToken });
      await registerSensorApi(app, monitor);
      await registerReadApi(app, monitor);
      await registerNotices(app, { ...monitor, clock: systemClock });
      registerAssets(app);
      // The gallery is for developers of pages; production does not have it.
      if (config.isDemoWorld) registerGallery(app);
      await registerConsole(app, {
        ...monitor,
        clock: systemClock,
        publicUrl: config.publicUrl,
        requireSecondFactor: config.requireSecondFactor,
        processing: { ...config, roles: monitor.roles },
        monitorUrl: () => config.publicUrl,
        caughtMailFolder: config.isDemoWorld ? config.mailFolder : null,
        demo: demoOf(program),
        demoPlace: { clusterId: config.demoClusterId, node: config.demoNode },
        demoRoles: demoRolesOf(program, [
          { label: 'Operator', email: 'operator@monitor.example' },
          { label: 'Viewer', email: 'viewer@monitor.example' },
        ]),
      });
    },
  });
}

/** The server of a process without the role `web`: its health and its metrics, on a port of their own. */
export function createHealthServer(config: MonitorConfig, monitor: Features): Promise<HttpServer> {
  return createHttpServer({
    host: config.host,
    port: config.healthPort,
    portSetting: 'SVC_MONITOR_HEALTH_PORT',
    hosts: hostRules(config),
    reporter: monitor.reporter,
    routes: (app) => registerHealth(app, { ...monitor, metricsToken: config.metricsToken }),
  });
}

function hostRules({ publicUrl, acceptedHosts }: MonitorConfig): HostRules {
  return {
    publicUrl,
    names: acceptedHosts,
    settings: { publicUrl: 'SVC_MONITOR_PUBLIC_URL', names: 'SVC_MONITOR_ACCEPTED_HOSTS' },
    // Other paths below `/api` are for people with a session.
    openPaths: [
      ...healthPaths,
      ...['/agent/v1', '/api/v1/query', '/api/v1/dimensions', '/api/v1/sites/:siteId/metrics'],
      ...['/api/v1/openapi.json', noticePath],
    ],
  };
}
