/** `/sites/{id}/vulnerabilities`: the request for a site's potential vulnerabilities, by server or by record. */
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Vulnerabilities } from '#monitor/vulnerabilities/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { formatCount, withQuery } from '#service-kit/pages/index.ts';
import { rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { nameAll } from '../port-scans/port-lines.ts';
import type { ListPart } from './counted-tables.ts';
import { type VulnerabilitiesPage, vulnerabilitiesPage } from './vulnerabilities.page.ts';

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
