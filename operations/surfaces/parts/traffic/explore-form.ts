/** How the explorer is asked: one box for filters with completion, chips, and what is drawn. A GET form, so the URL has it all. */
import { type FilterDimension, writeFilters } from '#operations/protect/index.ts';
import {
  assetUrl,
  attributes,
  banner,
  type Content,
  field,
  form,
  hiddenField,
  html,
  link,
  withQuery,
} from '#service-kit/pages/index.ts';
import { type ExplorerPlace, manyOf } from './place.ts';
import { negateHref, removeHref, type TrafficView, tops } from './traffic-view.ts';

/** What the form keeps of the URL without a field of its own. */
const kept = ['range', 'from', 'to', 'out', 'tab', 'tables'] as const;

/** A value as people know it: a server or a customer may be filtered by its number. */
export type LabelOf = (dimension: FilterDimension, value: string) => string;

export function exploreForm(place: ExplorerPlace, view: TrafficView, labelOf: LabelOf): Content {
  const values = new URLSearchParams(view.url.split('?')[1]);
  const hidden = kept.flatMap((name) => {
    const value = values.get(name);
    return value === null ? [] : hiddenField(name, value);
  });
  const box = html`<div class="field explore-box"><label for="explore-q">Filter</label><input${attributes({
    id: 'explore-q',
    type: 'search',
    name: 'q',
    value: view.typed,
    placeholder: place.example,
    maxlength: 1000,
    list: 'explore-values',
    autocomplete: 'off',
    spellcheck: 'false',
    'data-filter': true,
    'data-complete': `${place.path}complete`,
  })}><datalist id="explore-values"></datalist></div>`;
  const cancel = view.filters.length > 0 && link(withQuery(view.url, { q: undefined }), 'Remove all filters');
  return html`<div class="explore-form">${form(
    { action: place.path, method: 'get', submit: 'Show', submitKind: 'primary', layout: 'inline', cancel },
    [hidden, box, choices(place, view)],
  )}${chips(view, labelOf)}${faults(view)}<script type="module" src="${assetUrl('explore.js')}"></script></div>`;
}

function choices(place: ExplorerPlace, view: TrafficView): Content {
  const select = (name: string, label: string, value: string, options: { value: string; label: string }[]) =>
    field({ kind: 'select', id: `explore-${name}`, name, label, value, options });
  return [
    select(
      'by',
      'By',
      view.by,
      place.dimensions.map((value) => ({ value, label: manyOf(value) })),
    ),
    select('shape', 'Drawn as', view.shape, [
      { value: 'stacked', label: 'Stack' },
      { value: 'lines', label: 'Lines' },
    ]),
    select(
      'top',
      'Largest',
      String(view.top),
      tops.map((value) => ({ value: String(value), label: String(value) })),
    ),
    select('compare', 'Compare', view.isCompared ? 'previous' : '', [
      { value: '', label: 'Nothing' },
      { value: 'previous', label: 'Previous period' },
    ]),
  ];
}

/** Each value of each filter, with a way to leave it out again. */
function chips(view: TrafficView, labelOf: LabelOf): Content {
  if (view.filters.length === 0) return '';
  const items = view.filters.map((filter) => {
    const values = filter.values.map((value) => {
      const label = labelOf(filter.dimension, value);
      const text = `${filter.isNot ? 'not ' : ''}${filter.dimension} ${label}`;
      const remove = link(removeHref(view, filter, value), '×', {
        kind: 'quiet',
        label: `Remove the filter ${text}`,
      });
      return html`<span class="chip-value">${label}${remove}</span>`;
    });
    const word = filter.isNot ? 'is not' : 'is';
    const other = link(negateHref(view, filter), word, {
      kind: 'quiet',
      label: `${writeFilters([filter])}: change to ${filter.isNot ? 'is' : 'is not'}`,
    });
    return html`<li class="chip">${filter.dimension} ${other} ${values}</li>`;
  });
  return html`<ul class="chips" aria-label="Filters">${items}</ul>`;
}

function faults(view: TrafficView): Content {
  if (view.faults.length === 0) return '';
  return banner({ tone: 'warn', title: 'Part of the filter was left out', text: view.faults.join(' ') });
}
