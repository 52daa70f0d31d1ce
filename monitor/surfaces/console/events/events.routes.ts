/** `/sites/{id}/events`: the request for a site's events, by kind, sensor and time. */
import { type Static, Type } from 'typebox';
import type { App } from '#service-kit/http/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { eventsPage } from './events.page.ts';

const rowsShown = 100;
const Query = Type.Object({
  kind: Type.Optional(Type.String({ maxLength: 100 })),
  sensor: Type.Optional(Type.String({ maxLength: 20 })),
  from: Type.Optional(Type.String({ maxLength: 40 })),
  to: Type.Optional(Type.String({ maxLength: 40 })),
  after: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
});
type Query = Static<typeof Query>;

export function registerEvents(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/events',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const { query } = request;
      const limit = rowsLimit(request, rowsShown);
      const [found, kinds, sensors] = await Promise.all([
        deps.events.list(site.id, limit + 1, filterOf(query)),
        deps.events.listKinds(site.id),
        deps.sensors.list(site.id),
      ]);
      const events = found.slice(0, limit);
      const hasMore = found.length > limit;
      const content = eventsPage(request, { siteId: site.id, query, events, hasMore, kinds, sensors, nowMs });
      return sendConsolePage(request, reply, { title: 'Events', site: { site, page: 'events' } }, content);
    },
  );
}

function filterOf({ kind, sensor, from, to, after }: Query) {
  return {
    kind: kind || undefined,
    sensorId: sensor && /^\d{1,15}$/.test(sensor) ? Number(sensor) : undefined,
    fromMs: utc(from),
    toMs: utc(to),
    after,
  };
}

/** A `datetime-local` field has no time zone: it is read as UTC, as its label says. */
function utc(text: string | undefined): number | undefined {
  if (!text || !/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z?$/.test(text)) return undefined;
  const ms = Date.parse(`${text.replace(/Z$/, '')}Z`);
  return Number.isNaN(ms) ? undefined : ms;
}
