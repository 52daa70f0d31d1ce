/** The page of the devices on a site's segments, with names, addresses and traffic. */
import type { FastifyRequest } from 'fastify';
import {
  type Claim,
  type Device,
  type DeviceCounts,
  type DeviceFilter,
  deviceFilters,
  labelDevice,
} from '#monitor/devices/index.ts';
import type { DeviceTotals } from '#monitor/facts/index.ts';
import type { ImportState } from '#monitor/inventory/index.ts';
import type { ConnectionView } from '#monitor/operations-client/index.ts';
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
  refreshing,
  type Sort,
  type Tone,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { ageColumn, type DataColumn, dataTable, linkColumn, textColumn } from '#service-kit/web/index.ts';
import { addressHref } from '../parts/address-link.ts';
import { inventoryBanner } from '../parts/inventory-banner.ts';
import { labelSources, stateBadge } from './device-parts.ts';

export const rowsShown = 50;
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
export interface DeviceLine {
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

export interface DevicesPage extends TableView {
  /** Of this page. */
  lines: readonly DeviceLine[];
  sourceLimited: boolean;
  range: Range;
  counts: DeviceCounts;
  connection: ConnectionView | null;
  inventory: ImportState;
}

export function devicesPage(request: FastifyRequest, page: DevicesPage): Content {
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
