/** `/sites/{id}/vulnerabilities/cves/{cve}`: the request for one record of the database and what it touches. */
import { Type } from 'typebox';
import { type App, HttpError } from '#service-kit/http/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { nameAll } from '../port-scans/port-lines.ts';
import { cvePage } from './cve.page.ts';
import { readPart } from './vulnerabilities.routes.ts';

const Params = Type.Object({ ...SiteParams.properties, cve: Type.String({ maxLength: 40 }) });
const Query = Type.Object({ page: Type.Optional(Type.String({ maxLength: 10 })) });
const cveShape = /^CVE-[0-9]{4}-[0-9]{4,19}$/;

export function registerCve(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/vulnerabilities/cves/:cve',
    { schema: { params: Params, querystring: Query } },
    async (request, reply) => {
      const { siteId, cve } = request.params;
      const site = await siteOf(deps.sites, siteId);
      const finding = cveShape.test(cve) ? await deps.vulnerabilities.findFinding(cve) : null;
      if (!finding)
        throw new HttpError(404, {
          code: 'not_found',
          message: 'This record touches no service that is known.',
        });
      const found = await readPart(request, request.query.page, (page) =>
        deps.vulnerabilities.listTouched(cve, site.id, page),
      );
      const names = await nameAll(deps, found.rows);
      const part = { ...found, rows: found.rows.map((service) => ({ service, server: names(service) })) };
      return sendConsolePage(
        request,
        reply,
        { title: cve, site: { site, page: 'vulnerabilities' } },
        cvePage(request, { site, finding, part, nowMs: deps.clock.nowMs() }),
      );
    },
  );
}
