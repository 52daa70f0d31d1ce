/** `/search`: the request for results, for the suggestions below the search box, and for the command palette. */

import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { AddressPlace } from '#monitor/devices/index.ts';
import type { Found } from '#monitor/search/index.ts';
import { textMax } from '#monitor/search/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  badge,
  type Content,
  code,
  emptyState,
  html,
  link,
  PALETTE_HITS_MAX,
  pageHeader,
  section,
  sendPage,
  sendPaletteHits,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable, rowsLimit, textColumn } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { sendConsolePage } from '../frame.ts';
import { addressHref } from '../parts/address-link.ts';

const Query = Type.Object({ q: Type.Optional(Type.String({ maxLength: 1_000 })) });

export function registerSearch(app: App, deps: ConsoleDeps): void {
  app.get('/search', { schema: { querystring: Query } }, async (request, reply) => {
    const typed = request.query.q?.trim() ?? '';
    const found = await deps.search.find(typed, rowsLimit(request, shownMax));
    return sendConsolePage(reply, { title: 'Search' }, searchPage(request, typed, found));
  });

  app.get('/search/suggestions', { schema: { querystring: Query } }, async (request, reply) => {
    const found = await deps.search.find((request.query.q ?? '').slice(0, textMax), suggestedMax);
    return sendPage(reply, suggestions(found));
  });

  app.get('/search/palette', { schema: { querystring: Query } }, async (request, reply) => {
    const found = await deps.search.find((request.query.q ?? '').slice(0, textMax), PALETTE_HITS_MAX);
    const hits = found ? hitsOf(found) : [];
    return sendPaletteHits(
      reply,
      hits.map(({ kind, text, href, detail, state, site }) => ({
        ...{ kind, text, href },
        detail: [detail, state?.text, site].filter(Boolean).join(', '),
      })),
    );
  });
}

/** Columns of each kind's table; columns that would be empty are left out. */
const kinds: Readonly<Record<Kind, { one: string; detail?: string; hasState?: true; hasSite?: true }>> = {
  Addresses: { one: 'Address', detail: 'Owner', hasState: true, hasSite: true },
  Devices: { one: 'Device', detail: 'MAC and segment', hasState: true, hasSite: true },
  Servers: { one: 'Server', detail: 'In operations', hasState: true, hasSite: true },
  Applications: { one: 'Application', hasSite: true },
  Sensors: { one: 'Sensor', detail: 'Node', hasSite: true },
  Sites: { one: 'Site' },
};

/** Of each kind. */
const shownMax = 25;
const suggestedMax = 5;

/** `typed` is the text in the box; `found` is null when it is empty. */
function searchPage(request: FastifyRequest, typed: string, found: Found | null): Content {
  const hits = found ? hitsOf(found) : [];
  const groups = Map.groupBy(hits, (hit) => hit.kind);
  return [
    pageHeader({
      title: 'Search',
      state: found
        ? {
            tone: hits.length > 0 ? 'good' : 'neutral',
            text: `${hits.length === 0 ? 'Nothing' : hits.length}${found.hasMore ? ' and more' : ''} ${hits.length === 1 ? 'thing fits' : hits.length === 0 ? 'fits' : 'things fit'} “${found.question.text}”.`,
          }
        : undefined,
    }),
    hits.length === 0
      ? emptyState({
          title: typed === '' ? 'Search everything from one box' : 'No results',
          text: 'An address or its beginning (192.0.2., 2001:db8:), a prefix (192.0.2.0/24), a MAC or its beginning, the id or a word of the name of a server, a device, an application or domain, a sensor or a site.',
        })
      : [...groups].map(([kind, rows], index) =>
          section({ title: kind }, hitTable(request, `results-${index}`, kind, rows)),
        ),
    found?.hasMore &&
      html`<p class="hint">Only ${shownMax} results of each kind are shown. Enter more text to narrow the search.</p>`,
  ];
}

function suggestions(found: Found | null) {
  const groups = found ? [...Map.groupBy(hitsOf(found), (hit) => hit.kind)] : [];
  const items = groups.map(
    ([kind, hits]) =>
      html`<li class="suggestions-kind" role="presentation">${kind}</li>${hits
        .slice(0, suggestedMax)
        .map(
          (hit) =>
            html`<li>${link(hit.href, [hit.isCode ? code(hit.text) : html`<span>${hit.text}</span>`, html` <span class="hint">${[hit.detail, hit.state?.text, hit.site].filter(Boolean).join(', ')}</span>`], { kind: 'quiet' })}</li>`,
        )}`,
  );
  const all =
    found &&
    html`<li>${link(withQuery('/search', { q: found.question.text }), groups.length > 0 ? 'All results' : 'No results', { kind: 'quiet' })}</li>`;
  return html`<div id="suggestions" class="suggestions"><ul>${items}${all}</ul></div>`;
}

function hitTable(request: FastifyRequest, id: string, kind: Kind, rows: readonly Hit[]): Content {
  const { one, detail, hasState, hasSite } = kinds[kind];
  const columns: (DataColumn<Hit> | false)[] = [
    {
      key: 'name',
      header: one,
      cell: (row) => link(row.href, row.isCode ? code(row.text) : row.text),
      value: (row) => row.text,
    },
    detail !== undefined && textColumn('detail', detail, (row) => row.detail),
    hasState === true && {
      key: 'state',
      header: 'State',
      cell: ({ state }) => state && badge(state.tone, state.text),
      value: ({ state }) => state?.text,
    },
    hasSite === true &&
      textColumn('site', 'Site', (row) => row.site, {
        show: (site) => site ?? html`<span class="hint">not mapped</span>`,
      }),
  ];
  return dataTable<Hit>(request, {
    id,
    caption: kind,
    card: { line: ['state', 'detail', 'site'] },
    refreshSeconds: 0,
    rows,
    columns: columns.filter((column) => column !== false),
    empty: { title: 'No results', text: 'Try another text.' },
  });
}

// Results of the search as lines with links, for the page and for the suggestions.

type Kind = 'Addresses' | 'Devices' | 'Servers' | 'Applications' | 'Sensors' | 'Sites';

/** One result. */
interface Hit {
  kind: Kind;
  text: string;
  /** Addresses and MACs are shown in monospace. */
  isCode: boolean;
  href: string;
  site: string | null;
  detail: string;
  /** Good for present states. */
  state: { tone: Tone; text: string } | null;
}

/** Best matches first: exact addresses, then devices and servers, then names. */
function hitsOf(found: Found): Hit[] {
  return [
    ...found.addresses.map(ownedAddress),
    ...localAddresses(found),
    ...found.devices.map(device),
    ...found.machines.map(server),
    ...found.applications.map(application),
    ...found.sensors.map(sensor),
    ...found.sites.map(site),
  ];
}

function ownedAddress(hit: Found['addresses'][number]): Hit {
  const state =
    hit.endedAtMs === null
      ? ({ tone: 'good', text: 'owned now' } as const)
      : ({ tone: 'neutral', text: 'former owner' } as const);
  return address(hit.siteId, hit, hit.siteName, hit.mac, state);
}

/** The address that was searched, at sites that have it in a local prefix and know no owner. */
function localAddresses(found: Found): Hit[] {
  const owned = new Set(found.addresses.map((hit) => hit.siteId));
  const state = { tone: 'info', text: 'in a local prefix' } as const;
  return found.localSites
    .filter(({ siteId }) => !owned.has(siteId))
    .map(({ siteId, siteName }) => {
      const place = { address: found.question.address!, segment: '' };
      return address(siteId, place, siteName, 'no owner is known', state);
    });
}

function device(hit: Found['devices'][number]): Hit {
  return {
    kind: 'Devices',
    text: hit.name ?? hit.mac,
    isCode: hit.name === null,
    href: `/sites/${hit.siteId}/devices/${hit.deviceId}`,
    site: hit.siteName,
    detail: hit.name === null ? `on ${hit.segment}` : `${hit.mac} on ${hit.segment}`,
    state: hit.isArchived ? { tone: 'neutral', text: 'archived' } : { tone: 'good', text: 'live' },
  };
}

function server(hit: Found['machines'][number]): Hit {
  const site = hit.siteId ? `/sites/${hit.siteId}/devices` : '/operations#clusters';
  const tone = hit.state === 'running' ? 'good' : 'neutral';
  return {
    kind: 'Servers',
    text: hit.name,
    isCode: false,
    href: hit.siteId && hit.deviceId ? `${site}/${hit.deviceId}` : site,
    site: hit.siteName,
    detail: `server ${hit.serverId}, cluster ${hit.clusterId}${hit.deviceId ? '' : ', no device seen'}`,
    state: hit.isRetired ? { tone: 'neutral', text: 'destroyed' } : { tone, text: hit.state },
  };
}
function application(hit: Found['applications'][number]): Hit {
  return {
    kind: 'Applications',
    text: hit.name,
    isCode: false,
    href: withQuery(`/sites/${hit.siteId}/applications`, { view: 'all', range: '24h', name: hit.name }),
    site: hit.siteName,
    detail: '',
    state: null,
  };
}

function sensor(hit: Found['sensors'][number]): Hit {
  return {
    kind: 'Sensors',
    text: hit.hostName,
    isCode: false,
    href: `/sites/${hit.siteId}/sensors`,
    site: hit.siteName,
    detail: hit.node,
    state: null,
  };
}

function site(hit: Found['sites'][number]): Hit {
  return {
    kind: 'Sites',
    text: hit.siteName,
    isCode: false,
    href: `/sites/${hit.siteId}/traffic`,
    site: null,
    detail: '',
    state: null,
  };
}

function address(siteId: number, place: AddressPlace, site: string, owner: string, state: Hit['state']): Hit {
  const href = addressHref(siteId, place);
  const text = place.address;
  const detail = place.segment === '' ? owner : `${owner} on ${place.segment}`;
  return { kind: 'Addresses', text, isCode: true, href, site, detail, state };
}
