/**
 * The monitor's console: sites, their traffic and applications over time, devices, sensors, events,
 * settings, and the connection to operations.
 *
 * Every page but sign-in asks for a signed-in person; whatever changes something carries the session's token, and the
 * operation behind it asks for the role. Pages work without JavaScript.
 */
import type { FastifyRequest } from 'fastify';
import type { Clock } from '#common/clock/index.ts';
import type { Alerts } from '#monitor/alerts/index.ts';
import type { Applications } from '#monitor/applications/index.ts';
import type { Devices } from '#monitor/devices/index.ts';
import type { Events } from '#monitor/events/index.ts';
import type { Feeds } from '#monitor/feeds/index.ts';
import type { Health } from '#monitor/health/index.ts';
import type { Inbox } from '#monitor/inbox/index.ts';
import type { Inventory } from '#monitor/inventory/index.ts';
import type { Live } from '#monitor/live/index.ts';
import type { Connection } from '#monitor/operations-client/index.ts';
import type { Operators } from '#monitor/operators/index.ts';
import type { Probes } from '#monitor/probes/index.ts';
import type { Search } from '#monitor/search/index.ts';
import type { Sensors } from '#monitor/sensors/index.ts';
import type { SetAsides } from '#monitor/set-asides/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import type { Traffic } from '#monitor/traffic/index.ts';
import type { Vendors } from '#monitor/vendors/index.ts';
import type { AuditTrail } from '#service-kit/audit/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { errorPage } from '#service-kit/pages/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecondFactors } from '#service-kit/second-factors/index.ts';
import type { Sessions } from '#service-kit/sessions/index.ts';
import { registerSignIn } from '#service-kit/sign-in/index.ts';
import { registerAccount } from './account.routes.ts';
import { registerAddressPage } from './address.page.ts';
import { registerAlertsPage } from './alerts.page.ts';
import { registerApplicationSettings } from './application-settings.routes.ts';
import { registerApplicationsPage } from './applications.page.ts';
import { registerAuditPage } from './audit.page.ts';
import { registerAvailabilityPages } from './availability.page.ts';
import { registerDevicePage } from './device.page.ts';
import { registerDevicesPage } from './devices.page.ts';
import { registerEventsPage } from './events.page.ts';
import { guardConsole } from './guard.ts';
import { registerHealth } from './health.routes.ts';
import { registerLivePage } from './live.page.ts';
import { registerOperationsPage } from './operations.page.ts';
import { registerOverviewPage } from './overview.page.ts';
import { registerPeoplePage } from './people.page.ts';
import { registerSearchPage } from './search.page.ts';
import { registerSensorNode, registerSensorPage } from './sensor.page.ts';
import { registerSensorRotation } from './sensor-credential.ts';
import { registerSensorsPage } from './sensors.page.ts';
import { registerSettingsPage } from './settings.page.ts';
import { registerSystemPage } from './system.page.ts';
import { registerTrafficPage } from './traffic.page.ts';
import { registerTrafficOriginPage } from './traffic-origin.page.ts';

export interface ConsoleDeps {
  db: () => Queryable;
  clock: Clock;
  post: Post;
  factors: SecondFactors;
  /** Where people reach this program; null: as the request says. */
  publicUrl: string | null;
  /** Nobody uses the console without a second factor. */
  requireSecondFactor: boolean;
  sessions: Sessions;
  operators: Operators;
  sites: Sites;
  sensors: Sensors;
  traffic: Traffic;
  applications: Applications;
  events: Events;
  inbox: Pick<Inbox, 'listKept'>;
  connection: Connection;
  devices: Devices;
  inventory: Inventory;
  auditTrail: AuditTrail;
  live: Live;
  probes: Probes;
  alerts: Alerts;
  feeds: Feeds;
  search: Search;
  setAsides: Pick<SetAsides, 'listOfSensor'>;
  vendors: Pick<Vendors, 'registryHost'>;
  health: Health;
  /** How telemetry is processed, as the environment of this process sets it. */
  processing: {
    rankingHoldSeconds: number;
    liveHistorySeconds: number;
    liveHistoryMax: number;
    inventorySyncSeconds: number;
    hasInboxWorker: boolean;
    hasRanking: boolean;
    hasInventorySync: boolean;
    hasAlerts: boolean;
    hasMaintenance: boolean;
  };
  /** The URL that sensors reach the monitor under, where a setting names it. */
  monitorUrl: () => string | null;
}

/** Registers sign-in and the console's pages. */
export async function registerConsole(app: App, deps: ConsoleDeps): Promise<void> {
  registerSignIn(app, { ...deps, people: deps.operators.people, area: 'Monitor' });
  await app.register(async (plugin) => {
    const scope = plugin as unknown as App;
    scope.addHook('preValidation', guardConsole(deps));
    registerOverviewPage(scope, deps);
    registerLivePage(scope, deps);
    registerTrafficPage(scope, deps);
    registerAddressPage(scope, deps);
    registerTrafficOriginPage(scope, deps);
    registerApplicationsPage(scope, deps);
    registerApplicationSettings(scope, deps);
    registerDevicesPage(scope, deps);
    registerDevicePage(scope, deps);
    registerAvailabilityPages(scope, deps);
    registerSensorsPage(scope, deps);
    registerSensorPage(scope, deps);
    registerSensorNode(scope, deps);
    registerSensorRotation(scope, deps);
    registerAlertsPage(scope, deps);
    registerEventsPage(scope, deps);
    registerSettingsPage(scope, deps);
    registerOperationsPage(scope, deps);
    registerPeoplePage(scope, deps);
    registerAuditPage(scope, deps);
    registerAccount(scope, deps);
    registerSearchPage(scope, deps);
    registerSystemPage(scope, deps);
    registerHealth(scope, deps);
  });
}

/** Errors as pages where a person asked; the sensor API answers in JSON whatever is asked. */
export function monitorErrorPage(
  request: FastifyRequest,
  status: number,
  fields: { message: string },
): string | null {
  if (/^\/(agent|api|integrations)\//.test(request.url)) return null;
  const text = status >= 500 ? undefined : fields.message;
  return String(errorPage({ status, area: 'Monitor', home: '/', text, requestId: request.id }));
}
