/** `/sites/{id}/port-scans`: the request for a site's open ports and scans. */

import type { FastifyRequest } from 'fastify';
import { keptText } from '#contracts/retention.ts';
import type { SensorScans } from '#monitor/scans/index.ts';
import type { SensorState } from '#monitor/sensors/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  type Content,
  formatCount,
  html,
  link,
  pageHeader,
  refreshing,
  section,
  type Tone,
} from '#service-kit/pages/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { findingsOf, hostedOf, linesOf, nameAll } from './port-lines.ts';
import {
  type AttemptLine,
  attemptsShown,
  attemptTable,
  exclusionTexts,
  isOverdue,
  type PortLine,
  portTable,
  type ScanningSensor,
  sensorScanTable,
} from './scan-tables.ts';

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
    return sendConsolePage(reply, { title: 'Port scans', site: { site, page: 'port-scans' } }, content);
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

/** Of each table. */
const portsShown = 50;

interface PortScansPage {
  site: Site;
  schedule: { time: string; zone: string };
  sensors: readonly ScanningSensor[];
  ports: readonly PortLine[];
  attempts: readonly AttemptLine[];
  hasAllAttempts: boolean;
  nowMs: number;
}

function portScansPage(request: FastifyRequest, page: PortScansPage): Content {
  const { site, schedule, sensors, ports, attempts, nowMs } = page;
  const table = { siteId: site.id, shown: portsShown, nowMs };
  return [
    pageHeader({ title: 'Port scans', state: stateOf(page) }),
    refreshing({ id: 'port-scans', url: request.url, everySeconds: 10 }, [
      section(
        {
          id: 'open-ports',
          title: 'Open ports',
          description: `Ports with an observed application on the same address. They are stale two hours after a common scan saw them last, or 27 hours after a full one, and are kept for ${keptText('scans')}.`,
        },
        portTable(
          request,
          {
            ...table,
            id: 'ports',
            caption: 'Open ports',
            rows: ports.filter(({ applications }) => applications?.length !== 0),
          },
          {
            title: 'No open ports of observed applications',
            text: 'What scans find on ports that serve traffic appears here.',
          },
        ),
      ),
      section(
        {
          id: 'scan-only',
          title: 'Open ports without traffic',
          description:
            'Open ports without observed traffic of the last 24 hours. They are no applications and have no bandwidth.',
        },
        portTable(
          request,
          {
            ...table,
            ...{ id: 'scan-only', caption: 'Open ports without traffic' },
            rows: ports.filter(({ applications }) => applications?.length === 0),
          },
          {
            title: 'None',
            text: 'Every open port that scans found serves an observed application, or no scan has ended yet.',
          },
        ),
      ),
      section(
        {
          id: 'scans',
          title: 'Scans',
          description: `Those that run, and the newest of the last ${keptText('scans')}.`,
        },
        attemptTable(request, site.id, attempts, page.hasAllAttempts, nowMs),
      ),
      section({ id: 'scanning', title: 'Sensors' }, [
        html`<p>Full scans begin daily at ${schedule.time}, ${schedule.zone}. ${link(`/sites/${site.id}/settings#full-scan`, 'Change the time')}</p>`,
        sensorScanTable(request, sensors, nowMs),
      ]),
    ]),
  ];
}

function stateOf({ sensors, attempts, nowMs }: PortScansPage): { tone: Tone; text: string } {
  const scanning = sensors.filter(({ scans }) => scans !== null);
  if (scanning.length === 0)
    return {
      tone: 'info',
      text: 'No sensor of this site fetches scan plans. Scans need version 0.1.24 and nmap.',
    };
  const overdue = scanning.reduce((sum, { scans }) => sum + scans!.overdue, 0);
  if (overdue > 0)
    return { tone: 'warn', text: `${count(overdue, 'address', 'addresses')} not scanned for two hours.` };
  const silent = attempts.filter(({ attempt }) => isOverdue(attempt, nowMs)).length;
  if (silent > 0)
    return { tone: 'warn', text: `${count(silent, 'scan', 'scans')} without a report for a minute.` };
  const running = attempts.filter(({ attempt }) => attempt.state === 'running').length;
  return {
    tone: 'good',
    text: running > 0 ? `${count(running, 'scan', 'scans')} running.` : 'All scans are up to date.',
  };
}

const count = (value: number, one: string, many: string) =>
  `${formatCount(value)} ${value === 1 ? one : many}`;
