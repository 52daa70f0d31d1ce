/** `/search`: what fits a typed text, by kind, and the suggestions under the box while one types. */
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
  pageHeader,
  section,
  sendPage,
  withQuery,
} from '#service-kit/pages/index.ts';
import { dataTable, rowsLimit } from './data-table.ts';
import { sendConsolePage } from './frame.ts';
import type { ConsoleDeps } from './index.ts';

/** One thing that fits. */
interface Hit {
  kind: string;
  text: string;
  /** Addresses and MACs stand in monospace. */
  isCode: boolean;
  href: string;
  site: string | null;
  detail: string;
  /** A word about a state that is past. */
  past: string | null;
}

const shownMax = 25;
const suggestedMax = 5;
const Query = Type.Object({ q: Type.Optional(Type.String({ maxLength: 1_000 })) });

export function registerSearchPage(app: App, deps: ConsoleDeps): void {
  app.get('/search', { schema: { querystring: Query } }, async (request, reply) => {
    const typed = request.query.q?.trim() ?? '';
    const found = await deps.search.find(typed, rowsLimit(request, shownMax));
    const hits = found ? hitsOf(found) : [];
    const groups = Map.groupBy(hits, (hit) => hit.kind);
    const content = [
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
            title: typed === '' ? 'Search everything from one box' : 'Nothing fits',
            text: 'An address or the beginning of one (192.0.2., 2001:db8:), a prefix (192.0.2.0/24), a MAC in any spelling or its beginning, the id or a word of the name of a server, a device, an application or domain, a sensor or a site.',
          })
        : [...groups].map(([kind, rows], index) =>
            section({ title: kind }, hitTable(request, `results-${index}`, kind, rows)),
          ),
      found?.hasMore && html`<p class="hint">Lists are cut at ${shownMax}. Type more to narrow them.</p>`,
    ];
    return sendConsolePage(request, reply, { title: 'Search' }, content);
  });

  app.get('/search/suggestions', { schema: { querystring: Query } }, async (request, reply) => {
    const found = await deps.search.find((request.query.q ?? '').slice(0, textMax), suggestedMax);
    return sendPage(reply, suggestions(found));
  });
}

function suggestions(found: Found | null) {
  const groups = found ? [...Map.groupBy(hitsOf(found), (hit) => hit.kind)] : [];
  const items = groups.map(
    ([kind, hits]) =>
      html`<li class="suggestions-kind" role="presentation">${kind}</li>${hits
        .slice(0, suggestedMax)
        .map(
          (hit) =>
            html`<li>${link(hit.href, [hit.isCode ? code(hit.text) : html`<span>${hit.text}</span>`, html` <span class="hint">${[hit.detail, hit.site].filter(Boolean).join(', ')}</span>`], { kind: 'quiet' })}</li>`,
        )}`,
  );
  const all =
    found &&
    html`<li>${link(withQuery('/search', { q: found.question.text }), groups.length > 0 ? 'Everything that fits' : 'Nothing fits', { kind: 'quiet' })}</li>`;
  return html`<div id="suggestions" class="suggestions"><ul>${items}${all}</ul></div>`;
}

/** The nearest thing first: exact addresses, then devices and servers, then names. */
function hitsOf(found: Found): Hit[] {
  const addresses = found.addresses.map((hit) =>
    address(hit.siteId, hit.address, hit.siteName, `owned by ${hit.mac}`, hit.endedAtMs),
  );
  const seen = new Set(found.addresses.map((hit) => hit.siteId));
  const local = found.localSites
    .filter((site) => !seen.has(site.siteId))
    .map((site) =>
      address(site.siteId, found.question.address!, site.siteName, 'in a local prefix, no known owner', null),
    );
  const devices = found.devices.map((hit) => ({
    kind: 'Devices',
    text: hit.name ?? hit.mac,
    isCode: hit.name === null,
    href: `/sites/${hit.siteId}/devices/${hit.deviceId}`,
    site: hit.siteName,
    detail: `${hit.mac} on ${hit.segment}`,
    past: hit.isArchived ? 'archived' : null,
  }));
  const servers = found.machines.map((hit) => ({
    kind: 'Servers',
    text: hit.name,
    isCode: false,
    href: hit.deviceId
      ? `/sites/${hit.siteId}/devices/${hit.deviceId}`
      : hit.siteId
        ? `/sites/${hit.siteId}/devices`
        : '/operations#clusters',
    site: hit.siteName,
    detail: `server ${hit.vmId}, cluster ${hit.clusterId}, ${hit.deviceId ? hit.state : 'no device seen'}`,
    past: hit.isRetired ? 'destroyed' : null,
  }));
  const applications = found.applications.map((hit) => ({
    kind: 'Applications',
    text: hit.name,
    isCode: false,
    href: withQuery(`/sites/${hit.siteId}/applications`, { view: 'all', range: '24h', name: hit.name }),
    site: hit.siteName,
    detail: '',
    past: null,
  }));
  const sensors = found.sensors.map((hit) => ({
    kind: 'Sensors',
    text: hit.hostName,
    isCode: false,
    href: `/sites/${hit.siteId}/sensors`,
    site: hit.siteName,
    detail: `node ${hit.node}`,
    past: null,
  }));
  const sites = found.sites.map((hit) => ({
    kind: 'Sites',
    text: hit.siteName,
    isCode: false,
    href: `/sites/${hit.siteId}/traffic`,
    site: null,
    detail: '',
    past: null,
  }));
  return [...addresses, ...local, ...devices, ...servers, ...applications, ...sensors, ...sites];
}

function address(siteId: number, text: string, site: string, detail: string, endedAtMs: number | null): Hit {
  const href = `/sites/${siteId}/addresses/${encodeURIComponent(text)}`;
  const past = endedAtMs === null ? null : 'former owner';
  return { kind: 'Addresses', text, isCode: true, href, site, detail, past };
}

function hitTable(
  request: Parameters<typeof dataTable>[0],
  id: string,
  kind: string,
  rows: readonly Hit[],
): Content {
  return dataTable<Hit>(request, {
    id,
    caption: kind,
    rows,
    columns: [
      {
        key: 'name',
        header: kind,
        field: 'name',
        cell: (row) => link(row.href, row.isCode ? code(row.text) : row.text),
        value: (row) => row.text,
      },
      { key: 'detail', header: 'What', cell: (row) => row.detail, value: (row) => row.detail },
      {
        key: 'state',
        header: 'State',
        cell: (row) => (row.past ? badge('neutral', row.past) : ''),
        value: (row) => row.past,
      },
      { key: 'site', header: 'Site', cell: (row) => row.site ?? '', value: (row) => row.site },
    ],
    empty: { title: 'Nothing fits', text: 'Type something else.' },
  });
}
