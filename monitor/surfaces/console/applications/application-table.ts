/** The table of applications: a link expands a row, and a tooltip shows its connections (NET-2.2.2). */
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { ApplicationRow, ApplicationUse } from '#monitor/facts/index.ts';
import {
  attributes,
  type Content,
  code,
  field,
  form,
  formatAge,
  formatCount,
  hiddenField,
  html,
  link,
  withQuery,
} from '#service-kit/pages/index.ts';
import { countColumn, dataTable } from '#service-kit/web/index.ts';
import { keyText } from '../parts/application-detail.ts';
import { evidenceColumn, exchangedColumns, lastSentColumn, serviceColumn } from '../parts/usage-columns.ts';

export const Query = Type.Object({
  range: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  view: Type.Optional(Type.String()),
  /** Part of a name. */
  name: Type.Optional(Type.String({ maxLength: 300 })),
  /** The expanded row. */
  open: Type.Optional(Type.String({ maxLength: 320 })),
});
export type Query = Static<typeof Query>;

function tableLabel(use: ApplicationUse, rankedAtMs: number | null, nowMs: number): string {
  const count =
    use.total > use.rows.length
      ? `The ${formatCount(use.rows.length)} largest of ${formatCount(use.total)}`
      : `${formatCount(use.total)} in all`;
  return rankedAtMs === null
    ? count
    : `${count}, ranked ${formatAge(rankedAtMs, nowMs)}, updated every 5 min`;
}

/** The rows whose name contains the text; totals stay those of the view. */
export function applicationTable(
  request: FastifyRequest,
  siteId: number,
  use: ApplicationUse,
  shown: { nowMs: number; rankedAtMs: number | null; unfolded: { key: string; content: Content } | null },
) {
  const { nowMs, rankedAtMs, unfolded } = shown;
  const isUnfolded = (row: ApplicationRow) => unfolded?.key === keyText(row);
  return dataTable<ApplicationRow>(request, {
    id: 'applications',
    isComplete: use.total <= use.rows.length,
    caption: 'Applications by bytes',
    card: { line: ['in', 'out', 'service'] },
    rows: use.rows,
    filter: nameFilter(request, siteId),
    rowDetail: (row) => isUnfolded(row) && unfolded?.content,
    columns: [
      {
        key: 'name',
        header: 'Application',
        cell: (row) => nameCell(request, row, isUnfolded(row)),
        value: (row) => row.name,
      },
      serviceColumn,
      evidenceColumn,
      ...exchangedColumns<ApplicationRow>((row) => `${row.vantage} only`),
      countColumn('addresses', 'Addresses', (row) => row.addresses, { field: 'local_addresses' }),
      {
        key: 'top',
        header: 'Top connection',
        cell: (row) => topConnection(request, siteId, row),
        field: 'top_connection',
        value: ({ topConnection: top }) => top && `${top.client} to ${top.server}`,
      },
      lastSentColumn(nowMs),
    ],
    fields: [
      { field: 'vantage', value: (row) => row.vantage },
      { field: 'is_attributed', value: (row) => row.isAttributed },
    ],
    pages: { label: tableLabel(use, rankedAtMs, nowMs) },
    empty: {
      title: (request.query as Query).name ? 'No application with this name' : 'No applications in this view',
      text: (request.query as Query).name
        ? 'No application in this view and range has such a name. Try the view All or a longer range.'
        : 'Applications appear one or two minutes after a sensor captures traffic of local addresses.',
    },
  });
}

/** Expands and collapses the row. A link, so that it works without scripts and has a URL. */
function nameCell(request: FastifyRequest, row: ApplicationRow, isUnfolded: boolean) {
  const key = keyText(row);
  const id = `row-${createHash('sha256').update(key).digest('base64url').slice(0, 10)}`;
  const href = withQuery(request.url, { open: isUnfolded ? undefined : key });
  return html`<a${attributes({
    id,
    href: `${href}#${id}`,
    class: 'unfold',
    'aria-expanded': isUnfolded ? 'true' : 'false',
    'hx-get': href,
    'hx-select': '#applications',
    'hx-target': '#applications',
    'hx-swap': 'outerMorph',
  })}><span aria-hidden="true">${isUnfolded ? '▾' : '▸'}</span> ${row.isAttributed ? row.name : code(row.name)}</a>`;
}

function nameFilter(request: FastifyRequest, siteId: number): Content {
  const { name, view, range, from, to } = request.query as Query;
  const kept = Object.entries({ view, range, from, to }).flatMap(([key, value]) =>
    value === undefined ? [] : hiddenField(key, value),
  );
  return form(
    {
      action: `/sites/${siteId}/applications`,
      method: 'get',
      submit: 'Filter',
      submitKind: 'button',
      layout: 'inline',
      cancel: name && link(withQuery(request.url, { name: undefined, open: undefined }), 'All names'),
    },
    [kept, field({ kind: 'search', name: 'name', label: 'Name contains', value: name })],
  );
}

/** The busiest pair. Hover or keyboard focus shows up to five (NET-2.2.2). */
function topConnection(request: FastifyRequest, siteId: number, row: ApplicationRow) {
  const top = row.topConnection;
  if (!top) return html`<span class="unknown">not stored</span>`;
  const { view, range, from, to } = request.query as Query;
  const url = withQuery(`/sites/${siteId}/applications/connections`, {
    view,
    range,
    from,
    to,
    open: keyText(row),
  });
  return html`<span${attributes({
    class: 'has-tip',
    tabindex: 0,
    'aria-label': `${top.client} to ${top.server}${top.pairs > 1 ? ` and ${formatCount(top.pairs - 1)} more` : ''}`,
    'hx-get': url,
    'hx-trigger': 'mouseenter once, focus once',
    'hx-target': 'find .tip',
  })}>${code(top.client)} → ${code(top.server)}${
    top.pairs > 1 && html` <span class="hint">and ${formatCount(top.pairs - 1)} more</span>`
  }<span class="tip" role="tooltip">Expand the row for its connections.</span></span>`;
}
