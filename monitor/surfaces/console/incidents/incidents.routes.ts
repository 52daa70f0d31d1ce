/** `/incidents` and `/sites/{id}/incidents`: the requests for incidents, by state, severity, class and site. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { attackClasses } from '#contracts/attack-classes.ts';
import { incidentSeverities, incidentStates } from '#contracts/incidents.ts';
import { nameSensors } from '#monitor/views/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { incidentsPage } from './incidents.page.ts';

const rowsShown = 100;
const foreignShown = 20;
const uuidShape = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const Word = Type.Optional(Type.String({ maxLength: 40 }));
const Query = Type.Object({ state: Word, severity: Word, class: Word, site: Word, after: Word });
type Query = Static<typeof Query>;

export function registerIncidents(app: App, deps: ConsoleDeps): void {
  app.get('/incidents', { schema: { querystring: Query } }, (request, reply) =>
    showIncidents(deps, request, reply, request.query, null),
  );
  app.get(
    '/sites/:siteId/incidents',
    { schema: { params: SiteParams, querystring: Query } },
    (request, reply) => showIncidents(deps, request, reply, request.query, request.params.siteId),
  );
}

/** Words that no filter knows do not filter. */
const oneOf = (values: readonly string[], given: string | undefined) =>
  given !== undefined && values.includes(given) ? given : undefined;

async function showIncidents(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  given: Query,
  siteId: number | null,
) {
  const nowMs = Date.now();
  const { sites } = viewerOf(request);
  const site = siteId === null ? null : await siteOf(deps.sites, siteId);
  const query = {
    state: oneOf(incidentStates, given.state),
    severity: oneOf(incidentSeverities, given.severity),
    class: oneOf(attackClasses, given.class),
    site: oneOf(
      sites.map(({ id }) => String(id)),
      given.site,
    ),
    after: given.after && uuidShape.test(given.after) ? given.after : undefined,
  };
  const ofSite = site?.id ?? (query.site ? Number(query.site) : undefined);
  const limit = rowsLimit(request, rowsShown);
  const [found, counts, foreign] = await Promise.all([
    deps.incidents.list({ ...query, siteId: ofSite }, limit + 1),
    deps.incidents.countOpen(),
    site ? deps.incidents.listForeign(site.id, foreignShown) : [],
  ]);
  const names = await nameSensors(deps.db(), [...new Set(foreign.map(({ sensorId }) => sensorId))]);
  const open = { attacks: 0, stale: 0 };
  for (const one of counts) {
    if (ofSite !== undefined && one.siteId !== ofSite) continue;
    open.attacks += one.attacks;
    open.stale += one.stale;
  }
  const content = incidentsPage(request, {
    ...{ siteId: site?.id ?? null, sites, query, open, nowMs },
    incidents: found.slice(0, limit),
    hasMore: found.length > limit,
    foreign: foreign.map((row) => ({ ...row, hostName: names.get(row.sensorId)?.hostName ?? 'removed' })),
  });
  return sendConsolePage(
    request,
    reply,
    site ? { title: 'Incidents', site: { site, page: 'incidents' } } : { title: 'Incidents' },
    content,
  );
}
