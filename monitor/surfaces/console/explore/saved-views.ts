/** Views of a site's explorer under a name: links to them, and what saves and removes them. */
import { type SavedView, viewQueryOf } from '#monitor/saved-views/index.ts';
import {
  askButton,
  type Content,
  code,
  field,
  form,
  hiddenField,
  html,
  link,
  section,
  table,
} from '#service-kit/pages/index.ts';
import type { Viewer } from '../guard.ts';
import type { ExploreView } from './explore-view.ts';

export interface SavedViewsPart {
  views: readonly SavedView[];
  viewer: Viewer;
}

export const viewsPath = (siteId: number): string => `/sites/${siteId}/explore/views`;
export const viewHref = (siteId: number, query: string): string =>
  `/sites/${siteId}/explore${query === '' ? '' : `?${query}`}`;

const queryOf = (view: ExploreView): string => viewQueryOf(view.url.split('?')[1] ?? '');

/** Above the filters; the one that is shown is marked. */
export function savedLinks(view: ExploreView, { views }: SavedViewsPart): Content {
  if (views.length === 0) return '';
  const shown = queryOf(view);
  const items = views.map(({ name, query }) => {
    const to = link(viewHref(view.siteId, query), name);
    return html`<li class="chip">${query === shown ? html`<strong>${name}</strong>` : to}</li>`;
  });
  return html`<ul class="chips" aria-label="Saved views">${items}</ul>`;
}

export function savedSection(view: ExploreView, { views, viewer }: SavedViewsPart): Content {
  if (views.length === 0 && !viewer.canChange) return '';
  return section(
    {
      id: 'views',
      title: 'Saved views',
      description: 'Filters, range and pictures under a name, for everyone who sees this site.',
    },
    [
      viewer.canChange &&
        form(
          {
            action: viewsPath(view.siteId),
            csrfToken: viewer.csrfToken,
            submit: 'Save this view',
            submitKind: 'button',
            layout: 'inline',
          },
          [
            hiddenField('query', queryOf(view)),
            field({ name: 'name', id: 'view-name', label: 'Name', required: true, maxLength: 60 }),
          ],
        ),
      views.length > 0 && viewTable(view.siteId, views, viewer),
    ],
  );
}

function viewTable(siteId: number, views: readonly SavedView[], viewer: Viewer): Content {
  return table<SavedView>({
    caption: 'Saved views',
    card: { line: ['shows'] },
    rows: views,
    columns: [
      { key: 'name', header: 'Name', cell: (one) => link(viewHref(siteId, one.query), one.name) },
      {
        key: 'shows',
        header: 'Shows',
        kind: 'prose',
        cell: (one) => code(new URLSearchParams(one.query).get('q') ?? 'all traffic'),
      },
      {
        key: 'actions',
        header: 'Actions',
        kind: 'actions',
        cell: (one) =>
          viewer.canChange &&
          askButton(
            {
              id: `remove-view-${one.id}`,
              action: `${viewsPath(siteId)}/${one.id}/remove`,
              csrfToken: viewer.csrfToken,
              label: 'Remove',
              title: `Remove ${one.name}`,
            },
            'It goes for everyone who sees this site. The traffic stays.',
          ),
      },
    ],
    empty: { title: 'No saved views', text: 'Save one above.' },
  });
}
