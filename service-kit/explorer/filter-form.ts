/** How an explorer is asked: one box for filters with completion, choices, and a chip for each filter. A GET form, so the URL has it all. */
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
import { type Dimension, dimensionTable, manyOf } from './dimensions.ts';
import { filterTextMax, printFilters } from './filter-text.ts';
import { type ExplorerBox, type ExploreView, negateHref, removeHref } from './view.ts';

/** What differs from page to page. */
export interface ExploreFormOptions {
  /** Path of the page, and of its completion. */
  path: string;
  completePath: string;
  box: ExplorerBox;
  /** Filters that show how one writes them. */
  example: string;
  /** A value as people know it: a server or a customer may be filtered by its number. */
  labelOf: (dimension: Dimension, value: string) => string;
}

/** Fields of the form; all other values of the URL are kept. */
const fields = ['q', 'by', 'measure', 'shape', 'top', 'compare'];
const tops = [5, 10, 20, 50];

export function exploreForm(view: ExploreView, options: ExploreFormOptions): Content {
  const { url, filters } = view;
  const { path, box } = options;
  const kept = [...new URLSearchParams(url.split('?')[1])].filter(([name]) => !fields.includes(name));
  const input = html`<div class="field explore-box"><label for="explore-q">Filter</label><input${attributes({
    id: 'explore-q',
    type: 'search',
    name: 'q',
    value: view.typed,
    placeholder: options.example,
    maxlength: filterTextMax,
    list: 'explore-values',
    autocomplete: 'off',
    spellcheck: 'false',
    'data-filter': true,
    'data-complete': options.completePath,
  })}><datalist id="explore-values"></datalist></div>`;
  const groups = box.groups.map((value) => ({ value: value as string, label: manyOf(value) }));
  const choices = [
    choice('by', 'Group by', view.by ?? 'none', [{ value: 'none', label: 'In and out' }, ...groups]),
    choice('measure', 'Unit', view.measure, [
      { value: 'bytes', label: 'Bits' },
      { value: 'packets', label: 'Packets' },
    ]),
    choice('shape', 'Chart', view.shape, [
      { value: 'stacked', label: 'Stack' },
      { value: 'lines', label: 'Lines' },
    ]),
    choice(
      'top',
      'Show top',
      String(view.top),
      [...new Set([...tops, view.top])].map((one) => ({ value: String(one), label: String(one) })),
    ),
    choice('compare', 'Compare', view.compare ?? '', [
      { value: '', label: 'Nothing' },
      { value: 'previous', label: 'Previous period' },
    ]),
  ];
  const cancel = filters.length > 0 && link(withQuery(url, { q: undefined }), 'Remove all filters');
  return html`<link rel="stylesheet" href="${assetUrl('explore.css')}"><div class="explore-form">${form(
    { action: path, method: 'get', submit: 'Show', submitKind: 'primary', layout: 'inline', cancel },
    [
      kept.map(([name, value]) => hiddenField(name, value)),
      input,
      html`<details class="explore-choices"><summary>${summaryOf(view)}</summary><div>${choices}</div></details>`,
    ],
  )}${chipList(view, options)}${faultBanner(view)}<script type="module" src="${assetUrl('explore.js')}"></script></div>`;
}

/** What is chosen, on the button that the choices hide behind on a phone. */
const summaryOf = ({ by, top, shape }: ExploreView): string =>
  by === null ? 'In and out' : `${manyOf(by)} · Top ${top} · ${shape === 'stacked' ? 'Stack' : 'Lines'}`;

function faultBanner({ faults }: ExploreView): Content {
  if (faults.length === 0) return '';
  return banner({
    tone: 'warn',
    title: 'A part of this query was not understood and is left out',
    text: html`${faults.map(({ text, message }) => html`<p><code>${text}</code> ${message}</p>`)}`,
  });
}

/** Each value of each filter, with a way to leave it out again, and to the opposite. */
function chipList(view: ExploreView, { labelOf }: ExploreFormOptions): Content {
  if (view.filters.length === 0) return '';
  const items = view.filters.map((filter) => {
    const { dimension, is } = filter;
    const { word } = dimensionTable[dimension];
    const shown = filter.values.map((value) => {
      const text = labelOf(dimension, value);
      const label = `Remove the filter ${is ? '' : 'not '}${word} ${text}`;
      return html`<span class="chip-value">${text}${link(removeHref(view, filter, value), '×', { kind: 'quiet', label })}</span>`;
    });
    const label = `${printFilters([filter])}: change to ${is ? 'is not' : 'is'}`;
    const opposite = link(negateHref(view, filter), is ? 'is' : 'is not', { kind: 'quiet', label });
    return html`<li class="chip">${word} ${opposite} ${shown}</li>`;
  });
  return html`<ul class="chips" aria-label="Filters">${items}</ul>`;
}

/** A choice that applies at once. */
const choice = (
  name: string,
  label: string,
  value: string,
  options: { value: string; label: string }[],
): Content => field({ kind: 'select', id: `explore-${name}`, name, label, value, options });
