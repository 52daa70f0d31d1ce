/**
 * The monitor's console: sites with traffic and applications over time, devices, sensors, events, settings, and the
 * connection to operations.
 *
 * Every page except sign-in needs a signed-in person. Every change needs the session's token, and its operation checks
 * the role. Pages work without JavaScript.
 */
import type { FastifyRequest } from 'fastify';
import type { App, ErrorFields } from '#service-kit/http/index.ts';
import { registerCaughtMail } from '#service-kit/mail/index.ts';
import { registerOidc } from '#service-kit/oidc/index.ts';
import { errorPage } from '#service-kit/pages/index.ts';
import { registerSignIn, requireStepUp } from '#service-kit/sign-in/index.ts';
import { registerSignOn } from '#service-kit/sign-on/index.ts';
import { registerAccount, registerAudit } from './account/account.routes.ts';
import { registerAddress } from './addresses/address.routes.ts';
import { registerAlerts } from './alerts/alerts.routes.ts';
import { registerApplicationSettings, registerApplications } from './applications/applications.routes.ts';
import type { ConsoleDeps } from './deps.ts';
import { registerDevice } from './devices/device.routes.ts';
import { registerDevices } from './devices/devices.routes.ts';
import { registerEvents } from './events/events.routes.ts';
import { registerExplore } from './explore/explore.routes.ts';
import { guardConsole, viewerOf } from './guard.ts';
import { registerHandOff } from './hand-off/hand-off.routes.ts';
import { registerHandOffRules } from './hand-off/rule.routes.ts';
import { registerEvidence } from './incidents/evidence.routes.ts';
import { registerIncident } from './incidents/incident.routes.ts';
import { registerIncidents } from './incidents/incidents.routes.ts';
import { registerNetworks } from './networks/networks.routes.ts';
import { registerOperations } from './operations/operations.routes.ts';
import { registerPortScans } from './port-scans/port-scans.routes.ts';
import { registerAvailability } from './probes/availability.routes.ts';
import { registerProtectedAddress } from './protection/address.routes.ts';
import { registerDrills } from './protection/drill.routes.ts';
import { registerGroups } from './protection/group.routes.ts';
import { registerGroupWhatIf } from './protection/group-what-if.routes.ts';
import { registerProtection } from './protection/protection.routes.ts';
import { registerWhatIf } from './protection/what-if.routes.ts';
import { registerSearch } from './search/search.routes.ts';
import { registerSensor } from './sensors/sensor.routes.ts';
import { registerSensors } from './sensors/sensors.routes.ts';
import { registerPeople } from './settings/people.routes.ts';
import { registerFind, registerSignOnConsole } from './sign-on/sign-on.routes.ts';
import { registerOverview } from './sites/overview.routes.ts';
import { registerReadTokens } from './sites/read-tokens.routes.ts';
import { registerSettings } from './sites/settings.routes.ts';
import { registerHealth, registerSystem } from './system/system.routes.ts';
import { registerVulnerabilityDatabase } from './system/vulnerability-database.routes.ts';
import { registerAttack, registerLive } from './traffic/live.routes.ts';
import { registerTraffic } from './traffic/traffic.routes.ts';
import { registerTrafficOrigin } from './traffic/traffic-origin.routes.ts';
import { registerCve } from './vulnerabilities/cve.routes.ts';
import { registerServerFindings } from './vulnerabilities/server.routes.ts';
import { registerVulnerabilities } from './vulnerabilities/vulnerabilities.routes.ts';

/** Registers sign-in and the console's pages. */
export async function registerConsole(app: App, deps: ConsoleDeps): Promise<void> {
  const { people } = deps.operators;
  registerSignIn(app, { ...deps, people, area: 'Monitor' });
  registerSignOn(app, { ...deps, people, area: 'Monitor', home: '/' });
  registerOidc(app, { ...deps, people, area: 'Monitor', home: '/' });
  await app.register(async (plugin) => {
    const scope = plugin as unknown as App;
    scope.addHook('preValidation', guardConsole(deps));
    requireStepUp(scope);
    registerOverview(scope, deps);
    if (deps.demo?.attack) registerAttack(scope, deps, deps.demo.attack);
    registerLive(scope, deps);
    registerTraffic(scope, deps);
    registerAddress(scope, deps);
    registerTrafficOrigin(scope, deps);
    registerExplore(scope, deps);
    registerNetworks(scope, deps);
    registerApplications(scope, deps);
    registerApplicationSettings(scope, deps);
    registerDevices(scope, deps);
    registerDevice(scope, deps);
    registerPortScans(scope, deps);
    registerVulnerabilities(scope, deps);
    registerServerFindings(scope, deps);
    registerCve(scope, deps);
    registerAvailability(scope, deps);
    registerProtection(scope, deps);
    registerGroups(scope, deps);
    registerGroupWhatIf(scope, deps);
    registerProtectedAddress(scope, deps);
    registerDrills(scope, deps);
    registerWhatIf(scope, deps);
    registerHandOff(scope, deps);
    registerHandOffRules(scope, deps);
    registerSensors(scope, deps);
    registerSensor(scope, deps);
    registerIncidents(scope, deps);
    registerIncident(scope, deps);
    registerEvidence(scope, deps);
    registerAlerts(scope, deps);
    registerEvents(scope, deps);
    registerSettings(scope, deps);
    registerReadTokens(scope, deps);
    registerOperations(scope, deps);
    registerPeople(scope, deps);
    registerSignOnConsole(scope, deps);
    registerFind(scope, deps);
    registerAudit(scope, deps);
    registerAccount(scope, deps);
    registerSearch(scope, deps);
    registerSystem(scope, deps);
    registerVulnerabilityDatabase(scope, deps);
    registerHealth(scope, deps);
    if (deps.caughtMailFolder)
      registerCaughtMail(scope, {
        ...{ folder: deps.caughtMailFolder, area: 'Monitor' },
        isOperator: (request) => viewerOf(request).canChange,
      });
  });
}

/** Errors as pages for people; the sensor API always answers in JSON. */
export function monitorErrorPage(
  request: FastifyRequest,
  status: number,
  fields: Pick<ErrorFields, 'message' | 'fields'>,
): string | null {
  if (/^\/(agent|api|integrations)\//.test(request.url)) return null;
  const text = status >= 500 ? undefined : fields.message;
  const faults = fields.fields;
  return String(errorPage({ status, area: 'Monitor', home: '/', text, faults, requestId: request.id }));
}
