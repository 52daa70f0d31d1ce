/** `/sites/{id}/networks` and `/sites/{id}/addresses/{address}/networks`: who talked to a network, and the networks of an address. */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { keptMs, keptText } from '#contracts/retention.ts';
import type { AddressPlace } from '#monitor/devices/index.ts';
import type { PeerList } from '#monitor/facts/index.ts';
import { type AskedNetwork, type PeerHit, type PeerNetwork, readNetwork } from '#monitor/peers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  banner,
  type Content,
  code,
  emptyState,
  field,
  form,
  formatBytes,
  formatCount,
  formatTime,
  hiddenField,
  html,
  link,
  pageHeader,
  type Range,
  rangePicker,
  readRange,
  section,
  type TableOptions,
  withQuery,
} from '#service-kit/pages/index.ts';
import {
  countColumn,
  type DataColumn,
  dataTable,
  figureColumn,
  linkColumn,
  rowsLimit,
  textColumn,
  timeColumn,
} from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { RangeQuery, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { addressHref, addressText, canonicalOf, segmentOf } from '../parts/address-link.ts';

const AddressParams = Type.Object({ ...SiteParams.properties, address: Type.String({ maxLength: 64 }) });
const Query = Type.Object({
  ...RangeQuery.properties,
  network: Type.Optional(Type.String({ maxLength: 100 })),
});
const AddressQuery = Type.Object({
  ...RangeQuery.properties,
  segment: Type.Optional(Type.String({ maxLength: 128 })),
});
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
      return sendConsolePage(reply, options, content);
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
      return sendConsolePage(reply, { title, site: { site, page: 'traffic' } }, content);
    },
  );
}

/** The pages of networks: who talked to one, and those of an address. */
const kept = `Networks are kept by the hour for ${keptText('traffic')}, as /24 (IPv4) and /48 (IPv6), without remote addresses and services.`;

interface NetworksPage {
  siteId: number;
  /** As a person typed it. */
  typed: string;
  /** Null: nothing was typed, or not a network. */
  asked: AskedNetwork | null;
  range: Range;
  found: PeerList<PeerHit> | null;
  fileFault: string | null;
  nowMs: number;
}

function networksPage(request: FastifyRequest, page: NetworksPage): Content {
  const { asked, range, found, nowMs } = page;
  return [
    pageHeader({
      title: 'Networks',
      state: found && asked ? stateOf(found, asked, range) : undefined,
      actions: rangePicker({ url: request.url, range, nowMs }),
    }),
    faultBanner(page.fileFault),
    section(
      {
        title: 'Who talked to a network',
        description: `Addresses that exchanged Internet traffic with a network, and whose they were then. ${kept}`,
      },
      [searchForm(page), answerOf(request, page)],
    ),
  ];
}

function answerOf(request: FastifyRequest, { siteId, typed, asked, range, found }: NetworksPage): Content {
  return [
    asked?.isWidened &&
      banner({
        tone: 'info',
        title: `Answered for ${asked.prefix}`,
        text: 'Older traffic is kept by network only, so the answer covers every address of this network.',
      }),
    found
      ? peerTable(request, {
          siteId,
          rows: found.items,
          total: found.total,
          emptyText: `No address exchanged a packet with ${asked!.prefix} from ${hoursText(range)}, as far as sensors observed.`,
        })
      : typed === '' &&
        emptyState({
          title: 'Enter a network',
          text: 'For an abuse complaint, enter the network or the address that it names, and choose the hours.',
        }),
  ];
}

function stateOf(found: PeerList<PeerHit>, asked: AskedNetwork, range: Range) {
  if (found.total === 0)
    return {
      tone: 'neutral',
      text: html`No traffic with ${code(asked.prefix)}, ${hoursText(range)}.`,
    } as const;
  const addresses = new Set(found.items.map(({ address, segment }) => `${segment} ${address}`)).size;
  const count =
    found.items.length < found.total ? `More than ${formatCount(addresses)}` : formatCount(addresses);
  return {
    tone: 'info',
    text: html`${count} ${addresses === 1 ? 'address' : 'addresses'} exchanged ${formatBytes(
      found.inboundBytes + found.outboundBytes,
    )} with ${code(asked.prefix)}, ${hoursText(range)}.`,
  } as const;
}

function searchForm({ siteId, typed, asked, range }: NetworksPage): Content {
  const utc = (ms: number) => `${new Date(ms).toISOString().slice(0, 16)}Z`;
  const custom = range.name === 'custom';
  return form({ action: `/sites/${siteId}/networks`, method: 'get', submit: 'Search', layout: 'inline' }, [
    hiddenField('range', range.name),
    custom && [hiddenField('from', utc(range.fromMs)), hiddenField('to', utc(range.toMs))],
    field({
      kind: 'search',
      name: 'network',
      label: 'Network or address',
      value: typed,
      placeholder: '203.0.113.0/24',
      isCode: true,
      required: true,
      maxLength: 100,
      ...(typed !== '' && asked === null
        ? { error: 'This is not a network. Write it as 203.0.113.0/24, 2001:db8::/32, or as an address.' }
        : {}),
    }),
  ]);
}

interface AddressNetworksPage {
  siteId: number;
  place: AddressPlace;
  range: Range;
  found: PeerList<PeerNetwork>;
  fileFault: string | null;
  nowMs: number;
}

function addressNetworksPage(request: FastifyRequest, page: AddressNetworksPage): Content {
  const { siteId, place, range, found, nowMs } = page;
  const networks = found.total === 1 ? '1 network' : `${formatCount(found.total)} networks`;
  return [
    pageHeader({
      title: html`Networks of ${addressText(place)}`,
      state: {
        tone: found.total === 0 ? 'neutral' : 'info',
        text:
          found.total === 0
            ? `No networks, ${hoursText(range)}.`
            : `${networks}, ${formatBytes(found.inboundBytes)} in, ${formatBytes(found.outboundBytes)} out; ${hoursText(range)}.`,
      },
      actions: rangePicker({ url: request.url, range, nowMs }),
    }),
    faultBanner(page.fileFault),
    section(
      {
        title: 'Networks it talked to',
        description: html`Internet traffic of ${link(addressHref(siteId, place), 'this address')}, by bytes. ${kept}`,
      },
      networkTable(request, {
        siteId,
        rows: found.items,
        total: found.total,
        emptyText: 'No Internet traffic of this address was observed in these hours.',
      }),
    ),
  ];
}

function faultBanner(fault: string | null): Content {
  return (
    fault !== null &&
    banner({
      tone: 'warn',
      title: 'Networks are shown without AS and country',
      text: `${fault}. Check SVC_MONITOR_NETWORK_FILE and that the monitor may read the file.`,
    })
  );
}

// Tables of networks that addresses talked to.

const opened = { address: 'the address', network: 'the network', both: 'both' } as const;

const exchangedColumns: readonly DataColumn<PeerNetwork>[] = [
  figureColumn('in', 'In', (row) => row.inboundBytes, formatBytes, { field: 'in_bytes' }),
  figureColumn('out', 'Out', (row) => row.outboundBytes, formatBytes, { field: 'out_bytes' }),
  countColumn('packets', 'Packets', (row) => row.packets),
  countColumn('minutes', 'Minutes', (row) => row.minutes),
  textColumn('opened_by', 'Opened by', (row) => row.openedBy, { show: (openedBy) => opened[openedBy] }),
  timeColumn('first', 'First hour', (row) => row.firstHour * 1000, { field: 'first_hour' }),
  timeColumn('last', 'Last hour', (row) => row.lastHour * 1000, { field: 'last_hour' }),
];

/** Only what the files of the operator know of these networks. */
function nameColumns(rows: readonly PeerNetwork[]): DataColumn<PeerNetwork>[] {
  const columns: DataColumn<PeerNetwork>[] = [];
  if (rows.some((row) => row.asNumber !== null))
    columns.push({
      key: 'as',
      header: 'AS',
      cell: (row) =>
        row.asNumber !== null && html`AS${String(row.asNumber)}${row.asName !== null && ` ${row.asName}`}`,
      field: 'as_number',
      value: (row) => row.asNumber,
    });
  if (rows.some((row) => row.country !== null))
    columns.push(textColumn('country', 'Country', (row) => row.country));
  return columns;
}

/** Networks of one address. */
export function networkTable(
  request: FastifyRequest,
  of: { siteId: number; rows: readonly PeerNetwork[]; total: number; emptyText: string },
) {
  const { rows, total } = of;
  return dataTable<PeerNetwork>(request, {
    id: 'networks',
    caption: 'Networks that this address talked to',
    card: { line: ['in', 'out', 'as', 'country'] },
    refreshSeconds: 60,
    rows,
    isComplete: rows.length === total,
    columns: [
      linkColumn(
        'network',
        'Network',
        (row) => [row.network, networkHref(of.siteId, row.network, hourRange(row))],
        { show: code },
      ),
      ...nameColumns(rows),
      ...exchangedColumns,
    ],
    pages: cutOf(rows.length, total),
    empty: { title: 'No networks', text: of.emptyText },
  });
}

/** Addresses that talked to a network, and whose they were. */
function peerTable(
  request: FastifyRequest,
  of: { siteId: number; rows: readonly PeerHit[]; total: number; emptyText: string },
) {
  const { siteId, rows, total } = of;
  return dataTable<PeerHit>(request, {
    id: 'peers',
    caption: 'Addresses that talked to this network',
    card: { line: ['server', 'in', 'out'] },
    refreshSeconds: 60,
    rows,
    isComplete: rows.length === total,
    columns: [
      {
        key: 'address',
        header: 'Address',
        cell: (row) => link(addressHref(siteId, row, hourRange(row)), addressText(row)),
        value: (row) => row.address,
      },
      {
        key: 'server',
        header: 'Server at that time',
        cell: (row) =>
          row.servers.length > 0
            ? row.servers.map(({ name }) => name).join(', ')
            : html`<span class="unknown">unknown</span>`,
        value: (row) => row.servers.map(({ name }) => name).join(', ') || null,
      },
      textColumn('network', 'Network', (row) => row.network, { kind: 'code' }),
      ...nameColumns(rows),
      ...exchangedColumns,
    ] as DataColumn<PeerHit>[],
    fields: [
      { field: 'segment', value: (row) => row.segment || null },
      { field: 'vm_ids', value: (row) => row.servers.map(({ serverId }) => serverId).join(' ') || null },
    ],
    pages: cutOf(rows.length, total),
    empty: { title: 'No traffic with this network', text: of.emptyText },
  });
}

const cutOf = (shown: number, total: number): TableOptions<never>['pages'] =>
  total > shown ? { label: `The ${formatCount(shown)} largest of ${formatCount(total)}` } : undefined;

// Ranges of pages about networks: whole hours, at most as long as networks are kept.

const hourMs = 3_600_000;
const readMaxMs = keptMs('traffic');

/** The range of a query in whole hours, as networks are kept. */
function readHours(query: Readonly<Record<string, unknown>>, nowMs: number): Range {
  const range = readRange(query, nowMs, '7d');
  if (range.toMs - range.fromMs > readMaxMs)
    return {
      ...wholeHours(readRange({ range: '30d' }, nowMs)),
      error: `Networks are kept for ${keptText('traffic')}.`,
    };
  return wholeHours(range);
}

function wholeHours(range: Range): Range {
  return {
    ...range,
    fromMs: Math.floor(range.fromMs / hourMs) * hourMs,
    toMs: Math.ceil(range.toMs / hourMs) * hourMs,
  };
}

/** `2026-11-20 14:00 to 2026-11-20 15:00 UTC`. */
const hoursText = ({ fromMs, toMs }: Range): string =>
  `${formatTime(fromMs).replace(/ UTC$/, '')} to ${formatTime(toMs)}`;

/** The hours of a row as a query. */
function hourRange({ firstHour, lastHour }: { firstHour: number; lastHour: number }) {
  const utc = (second: number) => `${new Date(second * 1000).toISOString().slice(0, 16)}Z`;
  return { range: 'custom', from: utc(firstHour), to: utc(lastHour + 3600) };
}

/** URL of who talked to a network. */
const networkHref = (
  siteId: number,
  network: string,
  query: Readonly<Record<string, string | undefined>>,
): string => withQuery(`/sites/${siteId}/networks`, { network, ...query });
