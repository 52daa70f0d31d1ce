/** `/sites/{id}/traffic/origin`: the request for the sources of a number in the site's traffic. */
import { Type } from 'typebox';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { readMinute } from '../parts/origin.ts';
import { addressesShown, trafficOriginPage } from './traffic-origin.page.ts';

const Query = Type.Object({ from: Type.String({ maxLength: 40 }), to: Type.String({ maxLength: 40 }) });
const spanMaxSeconds = 86_400;

export function registerTrafficOrigin(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/traffic/origin',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const from = readMinute(request.query.from);
      const to = readMinute(request.query.to);
      if (from === null || to === null || to <= from || to - from > spanMaxSeconds) {
        throw new HttpError(422, {
          code: 'validation_failed',
          message:
            'Give from and to as whole minutes in UTC, such as 2026-11-21T10:05Z, at most a day apart.',
        });
      }
      const isMinute = to - from === 60;
      const [traffic, collection, addresses] = await Promise.all([
        deps.traffic.readSiteTraffic(site.id, from * 1000, to * 1000, 60),
        deps.traffic.readCollection(site.id, from * 1000, to * 1000),
        isMinute
          ? deps.traffic.listTopAddresses(site.id, from * 1000, to * 1000, rowsLimit(request, addressesShown))
          : null,
      ]);
      const known = { siteId: site.id, from, to, traffic, collection, addresses };
      const content = trafficOriginPage(request, known);
      return sendConsolePage(request, reply, { title: 'Sources', site: { site, page: 'traffic' } }, content);
    },
  );
}
