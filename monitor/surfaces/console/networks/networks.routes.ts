/** `/sites/{id}/networks` and `/sites/{id}/addresses/{address}/networks`: who talked to a network, and the networks of an address. */
import { type Static, Type } from 'typebox';
import { readNetwork } from '#monitor/peers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import { canonicalOf, segmentOf } from '../addresses/read-place.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { readHours } from './network-range.ts';
import { addressNetworksPage, networksPage } from './networks.page.ts';

const AddressParams = Type.Object({ ...SiteParams.properties, address: Type.String({ maxLength: 64 }) });
const RangeQuery = Type.Object({
  range: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
});
const Query = Type.Object({
  ...RangeQuery.properties,
  network: Type.Optional(Type.String({ maxLength: 100 })),
});
const AddressQuery = Type.Object({
  ...RangeQuery.properties,
  segment: Type.Optional(Type.String({ maxLength: 128 })),
});
export type NetworkQuery = Static<typeof Query>;

const rowsShown = 100;

export function registerNetworks(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/networks',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = readHours(request.query, nowMs);
      const typed = request.query.network?.trim() ?? '';
      const asked = typed === '' ? null : readNetwork(typed);
      const found =
        asked && (await deps.peers.findPeers(site.id, asked.prefix, range, rowsLimit(request, rowsShown)));
      const content = networksPage(request, {
        ...{ siteId: site.id, typed, asked, range, found, nowMs },
        fileFault: deps.peers.fileFault(),
      });
      const options = {
        title: 'Networks',
        site: { site, page: 'traffic' as const },
        status: typed !== '' && asked === null ? 422 : 200,
      };
      return sendConsolePage(request, reply, options, content);
    },
  );

  app.get(
    '/sites/:siteId/addresses/:address/networks',
    { schema: { params: AddressParams, querystring: AddressQuery } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const address = canonicalOf(request.params.address);
      const { segment } = await segmentOf(deps, site, address, request.query.segment);
      const range = readHours(request.query, nowMs);
      const place = { address, segment };
      const found = await deps.peers.listNetworks(site.id, place, range, rowsLimit(request, rowsShown));
      const content = addressNetworksPage(request, {
        ...{ siteId: site.id, place, range, found, nowMs },
        fileFault: deps.peers.fileFault(),
      });
      const title = `Networks of ${address}`;
      return sendConsolePage(request, reply, { title, site: { site, page: 'traffic' } }, content);
    },
  );
}
