/** The HTTP server of operations: which surface is served where. */
import { createOperationsMeters } from '#operations/health/index.ts';
import { gatewayCallbacks } from '#operations/payments/index.ts';
import { registerAdminApi } from '#operations/surfaces/admin-api/index.ts';
import { registerConsole } from '#operations/surfaces/console/index.ts';
import { registerCustomerApi } from '#operations/surfaces/customer-api/index.ts';
import { registerPortal } from '#operations/surfaces/portal/index.ts';
import {
  createConsoleSocket,
  registerHealth,
  registerPublic,
  renderErrorPage,
} from '#operations/surfaces/public/index.ts';
import { demoOf } from '#service-kit/demo/index.ts';
import {
  type App,
  createHttpServer,
  type HostRules,
  type HttpServer,
  healthPaths,
} from '#service-kit/http/index.ts';
import { registerMetrics } from '#service-kit/metrics/index.ts';
import { registerOidc } from '#service-kit/oidc/index.ts';
import { registerAssets, registerGallery } from '#service-kit/pages/index.ts';
import { readProvider, useProvider } from '#service-kit/pages/provider.ts';
import { demoRolesOf } from '#service-kit/sign-in/index.ts';
import { registerSignOn } from '#service-kit/sign-on/index.ts';
import type { Features } from './features.ts';
import type { Overrides } from './overrides.ts';

/** People of the demo world (`commands/seed-demo`), as its sign-in page offers them. */
const demoPeople = [
  { label: 'Customer', email: 'customer@demo.example' },
  { label: 'Another customer', email: 'other@demo.example' },
  { label: 'Operator', email: 'operator@demo.example' },
  { label: 'Support', email: 'support@demo.example' },
];

/** `onApp` sees the application before its routes are registered. */
export function createServer(
  features: Features,
  { onApp, consoleCheckMs }: Pick<Overrides, 'onApp' | 'consoleCheckMs'>,
): Promise<HttpServer> {
  const { settings, reporter } = features;
  useProvider(readProvider(settings));
  const surfaces = {
    ...features,
    apiFacts: { ...settings, origin: settings.publicUrl, catalog: features.catalog },
  };
  return createHttpServer({
    host: settings.host,
    port: settings.port,
    portSetting: 'SVC_OPERATIONS_PORT',
    hosts: hostRules(settings),
    trustedProxies: settings.trustedProxies,
    isHttps: settings.publicUrl?.startsWith('https:') ?? false,
    reporter,
    errorPage: renderErrorPage,
    webSockets: createConsoleSocket({ ...features, checkMs: consoleCheckMs }),
    async routes(app) {
      onApp?.(app);
      registerOwnMetrics(app, features);
      registerAssets(app);
      // The gallery is for page development; production does not serve it.
      if (settings.demoWorld) registerGallery(app);
      const program = { isDemo: settings.demoWorld, host: settings.host, attack: settings.demoAttack };
      const demo = demoOf(program);
      const demoRoles = demoRolesOf(program, demoPeople);
      await registerPublic(app, { ...surfaces, publicUrl: settings.publicUrl, demoRoles });
      registerHealth(app, healthSources(features));
      registerSignOn(app, {
        ...features,
        ...{ area: 'Operations', home: '/console/', people: features.accounts.people },
        requireSecondFactor: settings.requireSecondFactor,
      });
      registerOidc(app, {
        ...features,
        ...{ area: 'Operations', home: '/console/', people: features.accounts.people },
        publicUrl: settings.publicUrl,
        requireSecondFactor: settings.requireSecondFactor,
      });
      await registerCustomerApi(app, {
        ...features,
        requestsPerMinute: settings.requestsPerMinute,
        authFailuresMax: settings.authFailuresMax,
      });
      await registerAdminApi(app, {
        ...features,
        isDocumentationGlobal: settings.allowDocumentationAddresses,
      });
      await registerPortal(app, { ...surfaces, demo, publicUrl: settings.publicUrl });
      await registerConsole(app, {
        ...surfaces,
        demo,
        publicUrl: settings.publicUrl,
        requireSecondFactor: settings.requireSecondFactor,
        caughtMailFolder: settings.demoWorld ? settings.mailFolder : null,
      });
    },
  });
}

/** The server of a process without the role `web`: its health and its metrics, on a port of their own. */
export function createHealthServer(features: Features): Promise<HttpServer> {
  const { settings, reporter } = features;
  return createHttpServer({
    host: settings.host,
    port: settings.healthPort,
    portSetting: 'SVC_OPERATIONS_HEALTH_PORT',
    hosts: hostRules(settings),
    reporter,
    routes(app) {
      registerOwnMetrics(app, features);
      registerHealth(app, healthSources(features));
    },
  });
}

function hostRules({ publicUrl, acceptedHosts }: Features['settings']): HostRules {
  return {
    publicUrl,
    names: acceptedHosts,
    settings: { publicUrl: 'SVC_OPERATIONS_PUBLIC_URL', names: 'SVC_OPERATIONS_ACCEPTED_HOSTS' },
    openPaths: [
      ...healthPaths,
      ...['/api/v1', '/api/v2', '/api/admin/v1', '/docs/api/openapi.json'],
      ...gatewayCallbacks.map(({ path }) => path),
    ],
  };
}

function registerOwnMetrics(app: App, features: Features): void {
  const { metricsToken } = features.settings;
  if (metricsToken === null) return;
  const meters = createOperationsMeters(features);
  meters.watch(app);
  registerMetrics(app, {
    token: metricsToken,
    tokenSetting: 'SVC_OPERATIONS_METRICS_TOKEN',
    contentType: meters.contentType,
    render: meters.render,
  });
}

function healthSources({ system, limits }: Features) {
  return { checkWrites: system.checkWrites, findLimitsProblem: () => limits.findProblem() };
}
