/** `/sites/{id}/networks` and `/sites/{id}/addresses/{address}/networks`: who talked to a network, and the networks of an address. */

import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { keptText } from '#contracts/retention.ts';
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
  hiddenField,
  html,
  link,
  pageHeader,
  type Range,
  rangePicker,
  section,
} from '#service-kit/pages/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import { canonicalOf, segmentOf } from '../addresses/read-place.ts';
import type { ConsoleDeps } from '../deps.ts';
import { RangeQuery, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { addressHref, addressText } from '../parts/address-link.ts';
import { hoursText, networkTable, peerTable, readHours } from './network-tables.ts';

const AddressParams = Type.Object({ ...SiteParams.properties, address: Type.String({ maxLength: 64 }) });
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
