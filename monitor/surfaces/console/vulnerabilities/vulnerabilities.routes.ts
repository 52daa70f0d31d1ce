/** `/sites/{id}/vulnerabilities`: the request for a site's potential vulnerabilities, by server or by record. */
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Site } from '#monitor/sites/index.ts';
import type { AssessmentTotals, TouchingCve, Vulnerabilities } from '#monitor/vulnerabilities/index.ts';
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
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { nvdNotice } from '../parts/nvd-notice.ts';
import { nameAll } from '../port-scans/port-lines.ts';
import { activeOf, cveTable, type ListPart, type ServerLine, serverTable } from './counted-tables.ts';
import { activeText, findingMeaning, plural } from './finding-text.ts';
import { findingsHref } from './paths.ts';

const rowsShown = 50;
const Query = Type.Object({
  view: Type.Optional(Type.String({ maxLength: 20 })),
  page: Type.Optional(Type.String({ maxLength: 10 })),
});

export function registerVulnerabilities(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/vulnerabilities',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const { vulnerabilities } = deps;
      const [totals, problem, products, list] = await Promise.all([
        vulnerabilities.readTotals(site.id),
        vulnerabilities.findProblem(),
        vulnerabilities.listProducts(),
        readList(deps, request, site.id, request.query),
      ]);
      const titles = new Map(products.map(({ product, title }) => [product, title]));
      const nowMs = deps.clock.nowMs();
      return sendConsolePage(
        request,
        reply,
        { title: 'Findings', site: { site, page: 'vulnerabilities' } },
        vulnerabilitiesPage(request, { site, totals, problem, list, titles, nowMs }),
      );
    },
  );
}

async function readList(
  deps: ConsoleDeps,
  request: FastifyRequest,
  siteId: number,
  query: Static<typeof Query>,
): Promise<VulnerabilitiesPage['list']> {
  const { vulnerabilities } = deps;
  if (query.view === 'cves') {
    const part = await readPart(request, query.page, (page) => vulnerabilities.listCves(siteId, page));
    return { by: 'cve', part };
  }
  const part = await readPart(request, query.page, (page) => vulnerabilities.listServers(siteId, page));
  const names = await nameAll(deps, part.rows);
  return {
    by: 'server',
    part: { ...part, rows: part.rows.map((server) => ({ server, name: names(server) })) },
  };
}

/** One page of a list, by its number; a file has the first rows. */
export async function readPart<Row>(
  request: FastifyRequest,
  asked: string | undefined,
  read: (page: Parameters<Vulnerabilities['listServers']>[1]) => Promise<readonly Row[]>,
): Promise<ListPart<Row> & { pages: undefined | { label: string } }> {
  const limit = rowsLimit(request, rowsShown);
  const number = wantedFile(request) ? 1 : readNumber(asked);
  const offset = (number - 1) * limit;
  const found = await read({ offset, limit: limit + 1 });
  const rows = found.slice(0, limit);
  const isComplete = found.length <= limit;
  if (number === 1 && isComplete) return { rows, isComplete, pages: undefined };
  const to = (page: number) => withQuery(request.url, { page: page === 1 ? undefined : page });
  return {
    rows,
    isComplete,
    pages: {
      label:
        rows.length === 0 ? 'No more' : `${formatCount(offset + 1)}–${formatCount(offset + rows.length)}`,
      ...(number > 1 ? { previousHref: to(number - 1) } : {}),
      ...(isComplete ? {} : { nextHref: to(number + 1) }),
    },
  };
}

function readNumber(text: string | undefined): number {
  const number = Number(text ?? 1);
  return Number.isInteger(number) && number >= 1 && number <= 100_000 ? number : 1;
}

interface VulnerabilitiesPage {
  site: Site;
  totals: AssessmentTotals;
  /** Of the copy of the database. */
  problem: string | null;
  /** One of the two views. */
  list: { by: 'server'; part: ListPart<ServerLine> } | { by: 'cve'; part: ListPart<TouchingCve> };
  /** Titles of products by their keys. */
  titles: ReadonlyMap<string, string>;
  nowMs: number;
}

/** The page of a site's potential vulnerabilities: how many of each severity, by server and by record. */
function vulnerabilitiesPage(request: FastifyRequest, page: VulnerabilitiesPage): Content {
  const { site, totals, problem, list, titles, nowMs } = page;
  const path = findingsHref(site.id);
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
      tabs('Views', [
        { label: 'By server', href: path, current: list.by === 'server' },
        { label: 'By CVE', href: `${path}?view=cves`, current: list.by === 'cve' },
      ]),
      list.by === 'server'
        ? serverTable(request, site.id, list.part, nowMs)
        : cveTable(request, site.id, list.part, titles),
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
