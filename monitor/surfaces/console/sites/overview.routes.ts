/** `/`: the request for the list of sites, and for a new site. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { App } from '#service-kit/http/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, sendConsolePage } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { enrolCommand } from '../parts/enrol-command.ts';
import { overviewPage, type RefusedSite, sitesShown } from './overview.page.ts';
import { readSiteLines } from './read-site-lines.ts';

const Query = Type.Object({ page: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })) });

export function registerOverview(app: App, deps: ConsoleDeps): void {
  app.get('/', { schema: { querystring: Query } }, async (request, reply) =>
    showOverview(deps, request, reply, request.query.page ?? 1),
  );

  app.post(
    '/sites',
    { schema: { body: Type.Object({ name: Type.String({ maxLength: 200 }) }) } },
    async (request, reply) => {
      const { name } = request.body;
      try {
        const site = await deps.sites.create(viewerOf(request).actor, name);
        return reply.redirect(`/sites/${site.id}/settings#enrol`, 303);
      } catch (error) {
        const fault = faultText(error, 'sites.invalid', 'sites.name_taken');
        return showOverview(deps, request, reply, 1, { name, fault });
      }
    },
  );
}

const incidentsShown = 5;

async function showOverview(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  page: number,
  refused?: RefusedSite,
) {
  const nowMs = Date.now();
  const viewer = viewerOf(request);
  const first = (page - 1) * sitesShown;
  const sites = viewer.sites.slice(first, first + sitesShown);
  const known = await readSiteLines(deps, sites, nowMs);
  const open = await deps.incidents.countOpen();
  const incidents = await deps.incidents.list({}, incidentsShown);
  const attacks = open.reduce((sum, site) => sum + site.attacks + site.stale, 0);
  const enrolment = enrolCommand(deps.monitorUrl(), request, 'TOKEN');
  const content = overviewPage(request, {
    ...known,
    ...{ page, viewer, attacks, incidents, enrolment, refused, nowMs },
  });
  return sendConsolePage(request, reply, { title: 'Overview', status: refused ? 422 : 200 }, content);
}
