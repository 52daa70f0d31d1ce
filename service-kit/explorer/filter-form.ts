/** How an explorer is asked: one box for filters with completion, choices, and a chip for each filter. A GET form, so the URL has it all. */
import {
  assetUrl,
  attributes,
  type Content,
  field,
  form,
  hiddenField,
  html,
  link,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';

/** A filter that counts. */
export interface FilterChip {
  name: string;
  /** `is` or `is not`, and the view with the opposite. */
  word: string;
  opposite: { href: string; label: string };
  values: readonly { text: string; href: string; label: string }[];
}

export interface FilterFormOptions {
  /** Path of the page, and of its completion. */
  path: string;
  completePath: string;
  /** Path and query of the page. */
  url: string;
  /** Values that the form keeps of the URL without a field of its own. */
  kept: readonly string[];
  box: { label: string; value: string; example: string; maxLength?: number };
  choices: Content;
  /** How the link is named that removes all filters. */
  removeAll: string;
  chips: readonly FilterChip[];
  /** Behind the chips. */
  faults?: Content;
}

export function filterForm(options: FilterFormOptions): Content {
  const { path, url, box, chips } = options;
  const values = new URLSearchParams(url.split('?')[1]);
  const hidden = options.kept.flatMap((name) => {
    const value = values.get(name);
    return value === null ? [] : hiddenField(name, value);
  });
  const input = html`<div class="field explore-box"><label for="explore-q">${box.label}</label><input${attributes(
    {
      id: 'explore-q',
      type: 'search',
      name: 'q',
      value: box.value,
      placeholder: box.example,
      maxlength: box.maxLength,
      list: 'explore-values',
      autocomplete: 'off',
      spellcheck: 'false',
      'data-filter': true,
      'data-complete': options.completePath,
    },
  )}><datalist id="explore-values"></datalist></div>`;
  const cancel = chips.length > 0 && link(withQuery(url, { q: undefined }), options.removeAll);
  return html`<div class="explore-form">${form(
    { action: path, method: 'get', submit: 'Show', submitKind: 'primary', layout: 'inline', cancel },
    [hidden, input, options.choices],
  )}${chipList(chips)}${options.faults ?? ''}<script type="module" src="${assetUrl('explore.js')}"></script></div>`;
}

/** Each value of each filter, with a way to leave it out again. */
function chipList(chips: readonly FilterChip[]): Content {
  if (chips.length === 0) return '';
  const items = chips.map(({ name, word, opposite, values }) => {
    const shown = values.map(({ text, href, label }) => {
      const remove = link(href, '×', { kind: 'quiet', label });
      return html`<span class="chip-value">${text}${remove}</span>`;
    });
    const other = link(opposite.href, word, { kind: 'quiet', label: opposite.label });
    return html`<li class="chip">${name} ${other} ${shown}</li>`;
  });
  return html`<ul class="chips" aria-label="Filters">${items}</ul>`;
}

/** A choice that applies at once. */
export const choice = (
  name: string,
  label: string,
  value: string,
  options: { value: string; label: string }[],
): Content => field({ kind: 'select', id: `explore-${name}`, name, label, value, options });

export const unitChoice = (value: 'bytes' | 'packets'): Content =>
  choice('measure', 'Unit', value, [
    { value: 'bytes', label: 'Bits' },
    { value: 'packets', label: 'Packets' },
  ]);

export const shapeChoice = (value: 'stacked' | 'lines'): Content =>
  choice('shape', 'Drawn as', value, [
    { value: 'stacked', label: 'Stack' },
    { value: 'lines', label: 'Lines' },
  ]);

/** How many values have a line of their own. */
export const topChoice = (value: number, tops: readonly number[]): Content =>
  choice(
    'top',
    'Largest',
    String(value),
    [...new Set([...tops, value])].map((one) => ({ value: String(one), label: String(one) })),
  );

export const compareChoice = (isCompared: boolean): Content =>
  choice('compare', 'Compare', isCompared ? 'previous' : '', [
    { value: '', label: 'Nothing' },
    { value: 'previous', label: 'Previous period' },
  ]);

/** The two pictures of a view. */
export const pictureTabs = ({ url, tab }: { url: string; tab: 'time' | 'flows' }): Content =>
  tabs('Pictures', [
    { label: 'Over time', href: withQuery(url, { tab: undefined }), current: tab === 'time' },
    { label: 'Flows', href: withQuery(url, { tab: 'flows' }), current: tab === 'flows' },
  ]);
