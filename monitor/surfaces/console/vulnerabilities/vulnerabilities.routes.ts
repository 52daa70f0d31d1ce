/** `/sites/{id}/vulnerabilities`: the request for a site's potential vulnerabilities, by server or by record. */
import type { FastifyRequest } from 'fastify';
import type { AssessmentTotals } from '#monitor/vulnerabilities/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  banner,
  type Content,
  formatAge,
  formatCount,
  html,
  link,
  pageHeader,
  refreshing,
  severityBar,
  stat,
  stats,
  type Tone,
} from '#service-kit/pages/index.ts';
import { type ListFilter, readFilters, readList } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { nvdNotice } from '../parts/nvd-notice.ts';
import { nameAll } from '../port-scans/port-lines.ts';
import { activeOf, cveList, serverList } from './counted-tables.ts';
import { activeText, findingMeaning, findingsHref, plural } from './finding-text.ts';

const filters: readonly ListFilter[] = [
  {
    name: 'view',
    label: 'View',
    any: 'By server',
    by: 'tabs',
    options: [{ value: 'cves', label: 'By CVE' }],
  },
];

export function registerVulnerabilities(app: App, deps: ConsoleDeps): void {
  app.get('/sites/:siteId/vulnerabilities', { schema: { params: SiteParams } }, async (request, reply) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const { vulnerabilities } = deps;
    const nowMs = deps.clock.nowMs();
    const [totals, problem, products] = await Promise.all([
      vulnerabilities.readTotals(site.id),
      vulnerabilities.findProblem(),
      vulnerabilities.listProducts(),
    ]);
    const titles = new Map(products.map(({ product, title }) => [product, title]));
    const common = { path: findingsHref(site.id), filters, shown: 50 };
    const list =
      readFilters(request, filters).view === 'cves'
        ? await readList(request, {
            ...{ ...common, ...cveList(site.id, titles) },
            read: (_, { skip: offset, limit }) => vulnerabilities.listCves(site.id, { offset, limit }),
          })
        : await readList(request, {
            ...{ ...common, ...serverList(site.id, nowMs) },
            async read(_, { skip: offset, limit }) {
              const servers = await vulnerabilities.listServers(site.id, { offset, limit });
              const names = await nameAll(deps, servers);
              return servers.map((server) => ({ server, name: names(server) }));
            },
          });
    return sendConsolePage(
      reply,
      { title: 'Findings', site: { site, page: 'vulnerabilities' } },
      vulnerabilitiesPage(request, { totals, problem, list, nowMs }),
    );
  });
}

interface VulnerabilitiesPage {
  totals: AssessmentTotals;
  /** Of the copy of the database. */
  problem: string | null;
  /** One of the two views. */
  list: Pick<Awaited<ReturnType<typeof readList>>, 'table' | 'tabs'>;
  nowMs: number;
}

/** The page of a site's potential vulnerabilities: how many of each severity, by server and by record. */
function vulnerabilitiesPage(request: FastifyRequest, page: VulnerabilitiesPage): Content {
  const { totals, problem, list, nowMs } = page;
  return [
    pageHeader({
      title: 'Potential vulnerabilities',
      state: stateOf(totals),
      actions: link('/system/vulnerability-database', 'Vulnerability database', { kind: 'button' }),
    }),
    problem !== null && banner({ tone: 'warn', title: problem }),
    refreshing({ id: 'findings', url: request.url, everySeconds: 30 }, [
      activeOf(totals) > 0 && severityBar({ label: 'Active potential vulnerabilities', counts: totals }),
      totals.services > 0 && figures(totals, nowMs),
      list.tabs('view', 'Views'),
      list.table,
    ]),
    html`<p class="hint">${findingMeaning} ${nvdNotice}</p>`,
  ];
}

function stateOf(totals: AssessmentTotals): { tone: Tone; text: string } {
  const active = activeOf(totals);
  const { servers, affected, waiting, critical, high } = totals;
  if (servers === 0) return { tone: 'info', text: 'No scan found an open port yet.' };
  if (active === 0)
    return waiting === servers
      ? { tone: 'info', text: 'Services are being assessed.' }
      : { tone: 'good', text: 'No active potential vulnerability.' };
  return {
    tone: critical + high > 0 ? 'warn' : 'info',
    text: `${activeText(totals, active)}, on ${plural(affected, 'server', 'servers')}.`,
  };
}

function figures(totals: AssessmentTotals, nowMs: number): Content {
  const { servers, affected, services, unable, ignored, waiting, checkedAtMs } = totals;
  return stats(
    stat({
      label: 'Servers with findings',
      value: formatCount(affected),
      source: `of ${plural(servers, 'server', 'servers')} with open ports`,
    }),
    stat({ label: 'Ignored', value: formatCount(ignored), source: 'by operators, not among the active' }),
    stat({
      label: 'Unable to assess',
      value: formatCount(unable),
      source: `of ${plural(services, 'service', 'services')}`,
    }),
    stat({
      label: 'Oldest assessment',
      value: checkedAtMs === null ? undefined : formatAge(checkedAtMs, nowMs),
      source: waiting === 0 ? 'all are up to date' : `${plural(waiting, 'server waits', 'servers wait')}`,
    }),
  );
}
