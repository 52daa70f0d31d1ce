/** The page of a site's port scans: open ports of its servers, scans, and what sensors leave out. */

import type { FastifyRequest } from 'fastify';
import { keptText } from '#contracts/retention.ts';
import type { Site } from '#monitor/sites/index.ts';
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
import {
  type AttemptLine,
  attemptTable,
  type PortLine,
  portTable,
  type ScanningSensor,
  sensorScanTable,
} from './scan-tables.ts';
import { isOverdue } from './scan-text.ts';

/** Of each table. */
const portsShown = 50;

export interface PortScansPage {
  site: Site;
  schedule: { time: string; zone: string };
  sensors: readonly ScanningSensor[];
  ports: readonly PortLine[];
  attempts: readonly AttemptLine[];
  hasAllAttempts: boolean;
  nowMs: number;
}

export function portScansPage(request: FastifyRequest, page: PortScansPage): Content {
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
