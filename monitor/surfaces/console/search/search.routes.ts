/** `/search`: the request for results, for the suggestions below the search box, and for the command palette. */

import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { type Found, textMax } from '#monitor/search/index.ts';
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
  withQuery,
} from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable, rowsLimit, textColumn } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { sendConsolePage } from '../frame.ts';
import { type Hit, hitsOf, type Kind } from './hits.ts';

const Query = Type.Object({ q: Type.Optional(Type.String({ maxLength: 1_000 })) });

export function registerSearch(app: App, deps: ConsoleDeps): void {
  app.get('/search', { schema: { querystring: Query } }, async (request, reply) => {
    const typed = request.query.q?.trim() ?? '';
    const found = await deps.search.find(typed, rowsLimit(request, shownMax));
    return sendConsolePage(request, reply, { title: 'Search' }, searchPage(request, typed, found));
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
