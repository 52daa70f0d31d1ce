/** Views of the explorer under a name: links to them, and what saves and removes them. */
import { type SavedView, viewQueryOf } from '#operations/saved-views/index.ts';
import {
  askButton,
  badge,
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
import type { Explorer, ExplorerPlace } from './place.ts';
import type { TrafficView } from './traffic-view.ts';

const hrefOf = (place: ExplorerPlace, query: string) =>
  query === '' ? place.path : `${place.path}?${query}`;
const queryOf = (view: TrafficView) => viewQueryOf(view.url.split('?')[1] ?? '');

/** Above the filters; the one that is shown is marked. */
export function savedLinks(place: ExplorerPlace, view: TrafficView, views: readonly SavedView[]): Content {
  if (views.length === 0) return '';
  const shown = queryOf(view);
  const items = views.map(({ name, query }) => {
    const current = query === shown;
    return html`<li class="chip">${current ? html`<strong>${name}</strong>` : link(hrefOf(place, query), name)}</li>`;
  });
  return html`<ul class="chips" aria-label="Saved views">${items}</ul>`;
}

export function savedSection(
  place: ExplorerPlace,
  view: TrafficView,
  views: readonly SavedView[],
  who: Explorer,
): Content {
  if (views.length === 0 && !who.canSave) return '';
  const description = who.canShare
    ? 'Filters, range and pictures under a name, for you or for all operators.'
    : 'Filters, range and pictures under a name, for you alone.';
  return section({ id: 'views', title: 'Saved views', description }, [
    who.canSave &&
      form(
        {
          action: `${place.path}views`,
          csrfToken: who.csrfToken,
          submit: 'Save this view',
          submitKind: 'button',
          layout: 'inline',
        },
        [
          hiddenField('query', queryOf(view)),
          field({ name: 'name', id: 'view-name', label: 'Name', required: true, maxLength: 60 }),
          who.canShare &&
            field({
              kind: 'select',
              name: 'for',
              id: 'view-for',
              label: 'For',
              value: 'me',
              options: [
                { value: 'me', label: 'Me' },
                { value: 'operators', label: 'All operators' },
              ],
            }),
        ],
      ),
    views.length > 0 && viewTable(place, views, who),
  ]);
}

function viewTable(place: ExplorerPlace, views: readonly SavedView[], who: Explorer): Content {
  return table<SavedView>({
    caption: 'Saved views',
    card: { line: ['shows'] },
    rows: views,
    columns: [
      {
        key: 'name',
        header: 'Name',
        cell: (one) => [
          link(hrefOf(place, one.query), one.name),
          one.isShared && [' ', badge('neutral', 'all operators')],
        ],
      },
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
          who.canSave &&
          askButton(
            {
              id: `remove-view-${one.id}`,
              action: `${place.path}views/${one.id}/remove`,
              csrfToken: who.csrfToken,
              label: 'Remove',
              title: `Remove ${one.name}`,
            },
            one.isShared
              ? 'It goes for all operators. The traffic stays.'
              : 'The view goes, the traffic stays.',
          ),
      },
    ],
    empty: { title: 'No saved views', text: 'Save one above.' },
  });
}
