/** How the explorer is asked: one box for filters with completion, chips, and what is drawn. A GET form, so the URL has it all. */
import { dimensions, printQueryText } from '#monitor/explorer/index.ts';
import {
  assetUrl,
  attributes,
  type Content,
  field,
  form,
  hiddenField,
  html,
  link,
  withQuery,
} from '#service-kit/pages/index.ts';
import { type ExploreView, nameOf, negateHref, removeHref, shapes, sortNames } from './explore-view.ts';

/** What the form keeps of the URL without a field of its own. */
const kept = ['range', 'from', 'to', 'out', 'tab', 'tables', 'step'] as const;
const tops = ['5', '10', '20', '50'];

export function exploreForm(view: ExploreView): Content {
  const values = new URLSearchParams(view.url.split('?')[1]);
  const orders = dimensions.flatMap((one) => Object.values(sortNames(one)));
  const hidden = [...kept, ...orders].flatMap((name) => {
    const value = values.get(name);
    return value === null ? [] : hiddenField(name, value);
  });
  const path = `/sites/${view.siteId}/explore`;
  const box = html`<div class="field explore-box"><label for="explore-q">Filters</label><input${attributes({
    id: 'explore-q',
    type: 'search',
    name: 'q',
    value: view.typed,
    placeholder: 'app:github.com peer:198.51.100.0/24 port:443 -server:web-1',
    list: 'explore-values',
    autocomplete: 'off',
    spellcheck: 'false',
    'data-filter': true,
    'data-complete': `${path}/complete`,
  })}><datalist id="explore-values"></datalist></div>`;
  return html`<div class="explore-form">${form(
    {
      action: path,
      method: 'get',
      submit: 'Show',
      submitKind: 'primary',
      layout: 'inline',
      cancel: view.query.filters.length > 0 && link(withQuery(view.url, { q: undefined }), 'No filters'),
    },
    [hidden, box, choices(view)],
  )}${chips(view)}<script type="module" src="${assetUrl('explore.js')}"></script></div>`;
}

function choices(view: ExploreView): Content {
  const { query } = view;
  const grouped = view.offered.map((one) => ({ value: one as string, label: nameOf(one) }));
  const select = (name: string, label: string, value: string, options: { value: string; label: string }[]) =>
    field({ kind: 'select', id: `explore-${name}`, name, label, value, options });
  return [
    select('by', 'By', view.by ?? 'none', [{ value: 'none', label: 'In and out' }, ...grouped]),
    select('measure', 'Unit', query.measure, [
      { value: 'bytes', label: 'Bits' },
      { value: 'packets', label: 'Packets' },
    ]),
    select(
      'shape',
      'Drawn as',
      view.shape,
      shapes.map((one) => ({ value: one, label: one === 'stacked' ? 'Stack' : 'Lines' })),
    ),
    select(
      'top',
      'Largest',
      String(query.top),
      [...new Set([...tops, String(query.top)])].map((value) => ({ value, label: value })),
    ),
    select('compare', 'Compare', query.compare ?? '', [
      { value: '', label: 'Nothing' },
      { value: 'previous', label: 'Previous period' },
    ]),
  ];
}

/** Each value of each filter, with a way to leave it out again. */
function chips(view: ExploreView): Content {
  const { filters } = view.query;
  if (filters.length === 0) return '';
  const items = filters.map((filter) => {
    const name = nameOf(filter.dimension).toLowerCase();
    const values = filter.values.map((value) => {
      const text = printQueryText([{ ...filter, values: [value] }]);
      return html`<span class="chip-value">${value}${link(removeHref(view, filter, value), '×', {
        kind: 'quiet',
        label: `Remove ${text}`,
      })}</span>`;
    });
    const word = filter.is ? 'is' : 'is not';
    const other = link(negateHref(view, filter), word, {
      kind: 'quiet',
      label: `${name} ${word}; change to ${filter.is ? 'is not' : 'is'}`,
    });
    return html`<li class="chip">${name} ${other} ${values}</li>`;
  });
  return html`<ul class="chips" aria-label="Filters">${items}</ul>`;
}
