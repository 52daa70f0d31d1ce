/** Views of an explorer under a name on its page: links to them, and what saves and removes them. */
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
import { viewQueryOf } from './view.ts';

/** A view as a page lists it. */
export interface ShownView {
  id: number;
  name: string;
  query: string;
}

/** Above the filters; the one whose query is `shown` is marked. */
export function savedViewLinks(
  views: readonly ShownView[],
  shown: string,
  hrefOf: (query: string) => string,
): Content {
  if (views.length === 0) return '';
  const items = views.map(({ name, query }) => {
    const text = viewQueryOf(query) === shown ? html`<strong>${name}</strong>` : link(hrefOf(query), name);
    return html`<li class="chip">${text}</li>`;
  });
  return html`<ul class="chips" aria-label="Saved views">${items}</ul>`;
}

export interface SavedViewsSectionOptions<View extends ShownView> {
  views: readonly View[];
  /** Of the view that the page shows. */
  shown: string;
  description: string;
  canSave: boolean;
  csrfToken: string;
  /** Where a view is saved; below it, `{id}/remove` removes one. */
  action: string;
  hrefOf: (query: string) => string;
  /** A field more of the form. */
  more?: Content;
  /** Behind the name of a view. */
  noteOf?: (view: View) => Content;
  /** What removing a view does, asked before it is done. */
  removalText: (view: View) => string;
}

/** Nothing for a reader who can save none where there are none. */
export function savedViewsSection<View extends ShownView>(options: SavedViewsSectionOptions<View>): Content {
  const { views, shown, description, canSave, csrfToken, action } = options;
  if (views.length === 0 && !canSave) return '';
  return section({ id: 'views', title: 'Saved views', description }, [
    canSave &&
      form(
        {
          ...{ action, csrfToken, submit: 'Save this view' },
          ...{ submitKind: 'button', layout: 'inline' },
        },
        [
          hiddenField('query', shown),
          field({ name: 'name', id: 'view-name', label: 'Name', required: true, maxLength: 60 }),
          options.more ?? '',
        ],
      ),
    views.length > 0 && viewTable(options),
  ]);
}

function viewTable<View extends ShownView>(options: SavedViewsSectionOptions<View>): Content {
  const { views, hrefOf, noteOf, canSave, action, csrfToken, removalText } = options;
  return table<View>({
    caption: 'Saved views',
    card: { line: ['shows'] },
    rows: views,
    columns: [
      {
        key: 'name',
        header: 'Name',
        cell: (one) => [link(hrefOf(one.query), one.name), noteOf?.(one) ?? ''],
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
          canSave &&
          askButton(
            {
              id: `remove-view-${one.id}`,
              action: `${action}/${one.id}/remove`,
              ...{ csrfToken, label: 'Remove', title: `Remove ${one.name}` },
            },
            removalText(one),
          ),
      },
    ],
    empty: { title: 'No saved views', text: 'Save one above.' },
  });
}
