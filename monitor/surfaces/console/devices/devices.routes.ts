/** `/sites/{id}/devices`: the request for the devices of a site. */

import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import {
  type Claim,
  type Device,
  type DeviceCounts,
  type DeviceFilter,
  type DeviceSort,
  deviceFilters,
  deviceKeyOf,
  deviceSorts,
  labelDevice,
} from '#monitor/devices/index.ts';
import type { DeviceTotals, Limited } from '#monitor/facts/index.ts';
import type { ImportState } from '#monitor/inventory/index.ts';
import type { ConnectionView } from '#monitor/operations-client/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  badge,
  banner,
  type Content,
  code,
  field,
  form,
  formatBytes,
  formatCount,
  hiddenField,
  html,
  link,
  pageHeader,
  type Range,
  rangePicker,
  readRange,
  refreshing,
  type Sort,
  type Tone,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import {
  ageColumn,
  type DataColumn,
  dataTable,
  linkColumn,
  rowsLimit,
  textColumn,
} from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { RangeQuery, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { addressHref } from '../parts/address-link.ts';
import { inventoryBanner } from '../parts/inventory-banner.ts';
import { labelSources, stateBadge } from './device-parts.ts';

const DevicesQuery = Type.Object({
  show: Type.Optional(Type.Union(deviceFilters.map((filter) => Type.Literal(filter)))),
  q: Type.Optional(Type.String({ maxLength: 100 })),
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
  sort: Type.Optional(Type.Union(deviceSorts.map((sort) => Type.Literal(sort)))),
  direction: Type.Optional(Type.Union([Type.Literal('asc'), Type.Literal('desc')])),
  ...RangeQuery.properties,
});
type DevicesQuery = Static<typeof DevicesQuery>;

export function registerDevices(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/devices',
    { schema: { params: SiteParams, querystring: DevicesQuery } },
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

function sortOf(query: DevicesQuery): Sort {
  return { by: query.sort ?? 'seen', direction: query.direction ?? (query.sort ? 'asc' : 'desc') };
}

// The page of the devices on a site's segments, with names, addresses and traffic.

const rowsShown = 50;
const addressesShown = 2;

/** The filter, as it was asked for. */
interface Query {
  show?: DeviceFilter;
  q?: string;
  sort?: string;
  direction?: 'asc' | 'desc';
  range?: string;
  from?: string;
  to?: string;
}

/** A device with the data of its row. */
interface DeviceLine {
  device: Device;
  claims: Claim[];
  totals: Pick<DeviceTotals, 'wan' | 'lan'>;
}

interface TableView {
  siteId: number;
  /** Of all devices that the filter lets through. */
  total: number;
  page: number;
  sort: Sort;
  query: Query;
  nowMs: number;
}

interface DevicesPage extends TableView {
  /** Of this page. */
  lines: readonly DeviceLine[];
  sourceLimited: boolean;
  range: Range;
  counts: DeviceCounts;
  connection: ConnectionView | null;
  inventory: ImportState;
}

function devicesPage(request: FastifyRequest, page: DevicesPage): Content {
  const { lines, counts, range, nowMs } = page;
  return [
    pageHeader({
      title: 'Devices',
      state: stateOf(counts),
      actions: rangePicker({ url: request.url, range, nowMs }),
    }),
    inventoryBanner(page.connection, page.inventory, nowMs),
    filterTabs(request, page.query, counts),
    refreshing({ id: 'devices', url: request.url, everySeconds: 60 }, [
      page.sourceLimited && limitedBanner(),
      deviceTable(request, lines, page),
    ]),
  ];
}

/** Banner for results that a limit cut (NET-2.2.10). */
export function limitedBanner(): Content {
  return banner({
    tone: 'warn',
    title: 'Too much data for one page',
    text: 'The figures of this range are lower bounds (source limited). A shorter range is exact.',
  });
}

function stateOf(counts: DeviceCounts): { tone: Tone; text: string } {
  if (counts.all === 0) return { tone: 'neutral', text: 'No devices yet.' };
  const text = `${formatCount(counts.live)} live, ${formatCount(counts.archived)} archived`;
  const { conflictAddresses: conflicts } = counts;
  if (conflicts === 0) return { tone: 'good', text: `${text}; no address conflicts.` };
  const addresses = conflicts === 1 ? 'one address is' : `${formatCount(conflicts)} addresses are`;
  return { tone: 'warn', text: `${text}; ${addresses} claimed by more than one MAC.` };
}

const filterLabels: Readonly<Record<DeviceFilter, string>> = {
  all: 'All',
  live: 'Live',
  archived: 'Archived',
  conflict: 'In conflict',
  randomized: 'Randomized',
};

function filterTabs(request: FastifyRequest, query: Query, counts: DeviceCounts) {
  return tabs(
    'Filter devices',
    deviceFilters.map((filter) => ({
      label: filterLabels[filter],
      href: withQuery(request.url, { show: filter === 'all' ? undefined : filter, page: undefined }),
      current: (query.show ?? 'all') === filter,
      count: counts[filter],
    })),
  );
}

function deviceTable(request: FastifyRequest, lines: readonly DeviceLine[], view: TableView) {
  const { total, page, query } = view;
  const first = (page - 1) * rowsShown;
  const isNarrowed = Boolean(query.show || query.q);
  return dataTable<DeviceLine>(request, {
    id: 'devices',
    caption: 'Devices',
    card: { line: ['state', 'addresses', 'seen'] },
    rows: lines,
    isComplete: first + lines.length >= total,
    url: request.url,
    sort: view.sort,
    filter: searchForm(view),
    columns: deviceColumns(view),
    fields: [
      { field: 'wan_in_bytes', value: (row) => row.totals.wan?.rxBytes },
      { field: 'wan_out_bytes', value: (row) => row.totals.wan?.txBytes },
      { field: 'lan_in_bytes', value: (row) => row.totals.lan?.rxBytes },
      { field: 'lan_out_bytes', value: (row) => row.totals.lan?.txBytes },
      { field: 'randomized', value: (row) => row.device.isRandomized },
      { field: 'manufacturer', value: (row) => row.device.manufacturer },
      { field: 'virtual_machine_id', value: (row) => row.device.match?.serverId },
      { field: 'cluster_id', value: (row) => row.device.match?.clusterId },
    ],
    pages:
      total > rowsShown
        ? {
            label: `${formatCount(first + 1)}–${formatCount(first + lines.length)} of ${formatCount(total)}`,
            previousHref:
              page > 1 ? withQuery(request.url, { page: page === 2 ? undefined : page - 1 }) : undefined,
            nextHref: first + lines.length < total ? withQuery(request.url, { page: page + 1 }) : undefined,
          }
        : undefined,
    empty: isNarrowed
      ? { title: 'No matching devices', text: 'Shorten the search text, or select All.' }
      : {
          title: 'No devices yet',
          text: 'A device appears with the first minute in which a sensor sees it use a local address.',
        },
  });
}

function searchForm({ siteId, query }: TableView): Content {
  const kept = (['show', 'sort', 'direction', 'range', 'from', 'to'] as const).map((name) =>
    query[name] === undefined ? '' : hiddenField(name, query[name]),
  );
  return form(
    {
      action: `/sites/${siteId}/devices`,
      method: 'get',
      submit: 'Find',
      submitKind: 'button',
      layout: 'inline',
      cancel: query.q ? link(`/sites/${siteId}/devices`, 'All devices') : '',
    },
    [
      kept,
      field({
        name: 'q',
        kind: 'search',
        label: 'Find a device',
        placeholder: 'name, address or MAC',
        value: query.q ?? '',
        maxLength: 100,
      }),
    ],
  );
}

function deviceColumns({ siteId, nowMs }: TableView): DataColumn<DeviceLine>[] {
  return [
    linkColumn(
      'label',
      'Device',
      ({ device }) => [labelDevice(device).text, `/sites/${siteId}/devices/${device.id}`],
      { sortable: true },
    ),
    {
      key: 'state',
      header: 'State',
      cell: ({ device, claims }) => stateBadge(device, claims),
      value: ({ device }) => (device.archivedAtMs === null ? 'live' : 'archived'),
    },
    {
      key: 'addresses',
      header: 'Addresses',
      cell: ({ claims }) => addressesOf(siteId, claims),
      value: ({ claims }) => claims.map((claim) => claim.address).join(' '),
    },
    bytesColumn('wan', 'WAN in / out'),
    bytesColumn('lan', 'LAN in / out'),
    ageColumn('seen', 'Last seen', ({ device }) => device.lastSeenMs, nowMs, { sortable: true }),
    textColumn('mac', 'MAC', ({ device }) => device.mac, { sortable: true, kind: 'code' }),
    textColumn('segment', 'Segment', ({ device }) => device.segment, { sortable: true, kind: 'code' }),
    textColumn('source', 'Named by', ({ device }) => labelDevice(device).source, {
      show: (source) => labelSources[source],
    }),
  ];
}

/** Never a total of the MAC when no owned counters arrived (NET-2.2.9). */
function bytesColumn(side: 'wan' | 'lan', header: string): DataColumn<DeviceLine> {
  return {
    key: side,
    field: `${side}_state`,
    header,
    kind: 'figure',
    cell: ({ device, totals }) => {
      if (device.foreignReason !== null) return html`<span class="hint">not attributed</span>`;
      const bytes = totals[side];
      return bytes === null
        ? html`<span class="unknown">Unavailable</span>`
        : `${formatBytes(bytes.rxBytes)} / ${formatBytes(bytes.txBytes)}`;
    },
    value: ({ device, totals }) =>
      device.foreignReason !== null ? 'not_attached' : totals[side] === null ? 'unavailable' : 'observed',
  };
}

function addressesOf(siteId: number, claims: readonly Claim[]): Content {
  if (claims.length === 0) return html`<span class="hint">none</span>`;
  const more = claims.length - addressesShown;
  return [
    claims
      .slice(0, addressesShown)
      .map(
        (claim) =>
          html`<div>${link(addressHref(siteId, claim), code(claim.address))}${claim.isInConflict ? html` ${badge('warn', 'conflict')}` : ''}</div>`,
      ),
    more > 0 ? `+${more}` : '',
  ];
}
