/** The page of one server's potential vulnerabilities: findings, the evidence that they rest on, and what is ignored. */

import type { FastifyRequest } from 'fastify';
import { keptText } from '#contracts/retention.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { Ignore, ServerWithServices } from '#monitor/vulnerabilities/index.ts';
import {
  banner,
  type Content,
  formatAge,
  formatCount,
  html,
  link,
  pageHeader,
  section,
  severityBar,
  stat,
  stats,
  type Tone,
} from '#service-kit/pages/index.ts';
import type { Viewer } from '../guard.ts';
import { nvdNotice } from '../parts/nvd-notice.ts';
import type { OperationsLink } from '../parts/operations-link.ts';
import { activeOf } from './counted-tables.ts';
import {
  apartLines,
  apartTable,
  findingLines,
  findingTable,
  ignoredTable,
  pastIgnoreTable,
  type ServerTables,
} from './finding-tables.ts';
import { activeText, findingMeaning, plural } from './finding-text.ts';
import { serviceTable } from './service-table.ts';

export interface ServerFindingsPage {
  site: Site;
  name: string;
  found: ServerWithServices;
  open: string | undefined;
  inOperations: OperationsLink;
  viewer: Viewer;
  nowMs: number;
}

export function serverFindingsPage(request: FastifyRequest, page: ServerFindingsPage): Content {
  const { site, name, found, open, viewer, nowMs } = page;
  const { server, services, ignores } = found;
  const tables: ServerTables = { siteId: site.id, services, open, viewer, nowMs };
  const lines = findingLines(services);
  const ignored = lines.filter(({ ignore }) => ignore !== null);
  const apart = apartLines(services);
  const past = ignores.filter((one) => !isInForce(one));
  const leftOut = services.reduce((sum, service) => sum + service.leftOut, 0);
  return [
    pageHeader({
      title: name,
      state: stateOf(page),
      actions: [
        link(`/sites/${site.id}/port-scans`, 'Port scans', { kind: 'button' }),
        link('/system/vulnerability-database', 'Vulnerability database', { kind: 'button' }),
        page.inOperations({ kind: 'server', clusterId: server.clusterId, serverId: server.vmId }),
      ],
    }),
    leftOut > 0 &&
      banner({
        tone: 'info',
        title: `${formatCount(leftOut)} findings are left out`,
        text: 'Of each service the 500 most severe are kept.',
      }),
    activeOf(server) > 0 && severityBar({ label: 'Active potential vulnerabilities', counts: server }),
    figures(page),
    section(
      { id: 'findings', title: 'Active', description: findingMeaning },
      findingTable(
        request,
        tables,
        lines.filter(({ ignore }) => ignore === null),
      ),
    ),
    ignored.length > 0 &&
      section(
        {
          id: 'ignored',
          title: 'Ignored',
          description:
            'An ignore is of one address, port, software and CVE: another version or another owner of the address does not inherit it. Operations does not list it for the customer. Customers have ignores of their own.',
        },
        ignoredTable(request, tables, ignored),
      ),
    apart.length > 0 &&
      section(
        {
          id: 'apart',
          title: 'Shown apart',
          description: 'These are not active, not counted and not delivered to operations.',
        },
        apartTable(request, tables, apart),
      ),
    section(
      {
        id: 'services',
        title: 'Services',
        description: `The evidence of port scans that findings rest on. It is stale two hours after a common scan, or 27 hours after a full one, and expires after ${keptText('scans')}.`,
      },
      serviceTable(request, tables),
    ),
    past.length > 0 &&
      section({ id: 'past-ignores', title: 'Ended ignores' }, pastIgnoreTable(request, past, nowMs)),
    html`<p class="hint">${nvdNotice}</p>`,
  ];
}

const isInForce = ({ endedAtMs, isOver, isCurrent }: Ignore) => endedAtMs === null && !isOver && isCurrent;

function stateOf({ found: { server }, nowMs }: ServerFindingsPage): { tone: Tone; text: string } {
  const active = activeOf(server);
  if (server.checkedAtMs === null) return { tone: 'info', text: 'Its services are being assessed.' };
  if (active === 0)
    return server.unable === server.services
      ? { tone: 'info', text: 'No service could be assessed.' }
      : { tone: 'good', text: 'No active potential vulnerability.' };
  return {
    tone: server.critical + server.high > 0 ? 'warn' : 'info',
    text: `${activeText(server, active)}. Assessed ${formatAge(server.checkedAtMs, nowMs)}.`,
  };
}

function figures({ found: { server }, nowMs }: ServerFindingsPage): Content {
  const ageOf = (ms: number | null) => (ms === null ? undefined : formatAge(ms, nowMs));
  return stats(
    stat({ label: 'Ignored', value: formatCount(server.ignored), source: 'not among the active' }),
    stat({
      label: 'Unable to assess',
      value: formatCount(server.unable),
      source: `of ${plural(server.services, 'service', 'services')}`,
    }),
    stat({ label: 'Scanned', value: ageOf(server.evidenceAtMs), source: 'newest evidence' }),
    stat({ label: 'Assessed', value: ageOf(server.checkedAtMs), source: 'after scans and refreshes' }),
    stat({ label: 'Records', value: ageOf(server.databaseAtMs), source: 'the oldest that were compared' }),
  );
}
