/** `/sites/{id}/addresses/{address}`: the requests for one address, and for the data of its chart. */
import { type Static, Type } from 'typebox';
import type { App } from '#service-kit/http/index.ts';
import { chartJson, type Range, readRange } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { readAround } from '../parts/chart-around.ts';
import { readOperationsLink } from '../parts/operations-link.ts';
import { readMinute } from '../parts/origin.ts';
import { addressPage, chartData } from './address.page.ts';
import { readAddress, readPoints } from './read-address.ts';
import { canonicalOf, segmentOf } from './read-place.ts';

const Params = Type.Object({ ...SiteParams.properties, address: Type.String({ maxLength: 64 }) });
const Query = Type.Object({
  range: Type.Optional(Type.String()),
  /** For an address that is not globally unique. */
  segment: Type.Optional(Type.String({ maxLength: 128 })),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  at: Type.Optional(Type.String()),
  /** Seconds of the requested step; a minute by default. */
  step: Type.Optional(Type.Integer({ minimum: 60, maximum: 3600 })),
});
type Query = Static<typeof Query>;

/** Longest range of one page, because minutes are read one by one. */
const readMaxMs = 32 * 86_400_000;

export function registerAddress(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/addresses/:address',
    { schema: { params: Params, querystring: Query } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const address = canonicalOf(request.params.address);
      const { segment, others } = await segmentOf(deps, site, address, request.query.segment);
      const range = rangeOf(request.query, nowMs);
      const from = readMinute(request.query.at);
      const stepSeconds = Math.floor((request.query.step ?? 60) / 60) * 60;
      const step = from === null ? null : { from, to: from + stepSeconds };
      const place = { address, segment };
      const data = await readAddress(deps, site.id, place, range, step, nowMs);
      const inOperations = await readOperationsLink(deps.signOn);
      const shown = { siteId: site.id, place, others, range, step, ...data, inOperations, nowMs };
      const content = addressPage(request, shown);
      return sendConsolePage(request, reply, { title: address, site: { site, page: 'traffic' } }, content);
    },
  );

  app.get(
    '/sites/:siteId/addresses/:address/chart.json',
    { schema: { params: Params, querystring: Query } },
    async (request) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = rangeOf(request.query, nowMs);
      const address = canonicalOf(request.params.address);
      const { segment } = await segmentOf(deps, site, address, request.query.segment);
      const [points, around] = await Promise.all([
        readPoints(deps, site.id, { address, segment }, range, nowMs),
        readAround(deps, { siteId: site.id, addresses: [address] }, range, nowMs),
      ]);
      return chartJson('bit/s', chartData(points, around, range));
    },
  );
}

function rangeOf(query: Query, nowMs: number): Range {
  const range = readRange(query, nowMs, '24h');
  if (range.toMs - range.fromMs <= readMaxMs) return range;
  return {
    ...readRange({ range: '30d' }, nowMs),
    error: 'An address is shown for at most 32 days at a time.',
  };
}
