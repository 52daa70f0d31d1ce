/** `/sites/{id}/port-scans`: the request for a site's open ports and scans. */
import type { SensorScans } from '#monitor/scans/index.ts';
import type { SensorState } from '#monitor/sensors/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { formatCount } from '#service-kit/pages/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { hostedOf } from './hosted.ts';
import { findingsOf, linesOf, nameAll } from './port-lines.ts';
import { portScansPage } from './port-scans.page.ts';
import { attemptsShown, type ScanningSensor } from './scan-tables.ts';
import { exclusionTexts } from './scan-text.ts';

/** Open ports of one site that are read. */
const portsMax = 10_000;
/** Sensors whose excluded addresses are counted. */
const describedMax = 50;

export function registerPortScans(app: App, deps: ConsoleDeps): void {
  app.get('/sites/:siteId/port-scans', { schema: { params: SiteParams } }, async (request, reply) => {
    const nowMs = Date.now();
    const site = await siteOf(deps.sites, request.params.siteId);
    const limit = rowsLimit(request, attemptsShown);
    const [schedule, ports, attempts, sensors, scanning] = await Promise.all([
      deps.scans.readSchedule(site.id),
      deps.scans.listOpenPorts(site.id, portsMax),
      deps.scans.listAttempts(site.id, limit),
      deps.sensors.list(site.id),
      deps.scans.listSensorScans(site.id),
    ]);
    const [names, hosted, findings] = await Promise.all([
      nameAll(deps, [...ports, ...attempts]),
      hostedOf(deps, site.id, ports, nowMs),
      findingsOf(deps, ports),
    ]);
    const hostNames = new Map(sensors.map(({ id, hostName }) => [id, hostName]));
    const content = portScansPage(request, {
      ...{ site, schedule, nowMs, hasAllAttempts: attempts.length < limit },
      sensors: await describeSensors(deps, sensors, scanning),
      ports: linesOf(ports, hosted, names, findings),
      attempts: attempts.map((attempt) => ({
        ...{ attempt, server: names(attempt) },
        sensor: hostNames.get(attempt.sensorId) ?? 'removed',
      })),
    });
    return sendConsolePage(
      request,
      reply,
      { title: 'Port scans', site: { site, page: 'port-scans' } },
      content,
    );
  });
}

async function describeSensors(
  { scans }: ConsoleDeps,
  sensors: readonly SensorState[],
  scanning: readonly SensorScans[],
): Promise<ScanningSensor[]> {
  const byId = new Map(scanning.map((one) => [one.sensorId, one]));
  const described: ScanningSensor[] = [];
  for (const [place, sensor] of sensors.entries()) {
    const known = byId.get(sensor.id) ?? null;
    const excluded = known && place < describedMax ? await scans.countExcluded(sensor.id) : [];
    const text = excluded
      .map(({ why, addresses }) => `${formatCount(addresses)}: ${exclusionTexts[why]}`)
      .join('; ');
    described.push({ sensor, scans: known, excluded: text });
  }
  return described;
}
