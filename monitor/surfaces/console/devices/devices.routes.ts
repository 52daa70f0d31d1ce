/** `/sites/{id}/devices`: the request for the devices of a site. */
import { type Static, Type } from 'typebox';
import {
  type Device,
  type DeviceSort,
  deviceFilters,
  deviceKeyOf,
  deviceSorts,
} from '#monitor/devices/index.ts';
import type { DeviceTotals, Limited } from '#monitor/facts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { readRange, type Sort } from '#service-kit/pages/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { RangeQuery, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { type DeviceLine, devicesPage, rowsShown } from './devices.page.ts';

const Query = Type.Object({
  show: Type.Optional(Type.Union(deviceFilters.map((filter) => Type.Literal(filter)))),
  q: Type.Optional(Type.String({ maxLength: 100 })),
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
  sort: Type.Optional(Type.Union(deviceSorts.map((sort) => Type.Literal(sort)))),
  direction: Type.Optional(Type.Union([Type.Literal('asc'), Type.Literal('desc')])),
  ...RangeQuery.properties,
});
type Query = Static<typeof Query>;

export function registerDevices(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/devices',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const nowMs = Date.now();
      const { query } = request;
      const site = await siteOf(deps.sites, request.params.siteId);
      const range = readRange(query, nowMs, '1h');
      const sort = sortOf(query);
      const page = query.page ?? 1;
      const [connection, inventory, counts, found] = await Promise.all([
        deps.connection.view(),
        deps.inventory.state(),
        deps.devices.counts(site.id),
        deps.devices.page(site.id, {
          filter: query.show ?? 'all',
          search: (query.q ?? '').trim(),
          sort: sort.by as DeviceSort,
          direction: sort.direction,
          offset: (page - 1) * rowsShown,
          limit: rowsLimit(request, rowsShown),
        }),
      ]);
      const read = await readLines(deps, site.id, found.devices, range);
      const view = { siteId: site.id, total: found.total, page, sort, query, nowMs };
      const content = devicesPage(request, { ...view, ...read, range, counts, connection, inventory });
      return sendConsolePage(reply, { title: 'Devices', site: { site, page: 'devices' } }, content);
    },
  );
}

async function readLines(
  deps: ConsoleDeps,
  siteId: number,
  devices: readonly Device[],
  range: { fromMs: number; toMs: number },
): Promise<{ lines: DeviceLine[]; sourceLimited: boolean }> {
  const keys = devices.filter((device) => device.foreignReason === null).map(deviceKeyOf);
  const [claims, totals] = await Promise.all([
    deps.devices.listClaims(devices.map((device) => device.id)),
    keys.length === 0
      ? ({ items: [], sourceLimited: false } satisfies Limited<DeviceTotals>)
      : deps.traffic.sumDevices(siteId, keys, range.fromMs, range.toMs),
  ]);
  const claimsOf = Map.groupBy(claims, (claim) => claim.deviceId);
  const totalsOf = new Map(totals.items.map((item) => [item.deviceKey, item]));
  const lines = devices.map((device) => ({
    device,
    claims: claimsOf.get(device.id) ?? [],
    totals: totalsOf.get(deviceKeyOf(device)) ?? { wan: null, lan: null },
  }));
  return { lines, sourceLimited: totals.sourceLimited };
}

function sortOf(query: Query): Sort {
  return { by: query.sort ?? 'seen', direction: query.direction ?? (query.sort ? 'asc' : 'desc') };
}
