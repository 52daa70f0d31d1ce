/** The bar of filters above a chart: chips that take a filter away, one box to type in, and what the lines are. */
import {
  type Dimension,
  dimensionTable,
  type Filter,
  manyOf,
  printFilters,
  type TextFault,
} from '#service-kit/explorer/index.ts';
import {
  banner,
  type Content,
  field,
  form,
  type Html,
  hiddenField,
  html,
  link,
  withQuery,
} from '#service-kit/pages/index.ts';

export interface FilterBarOptions {
  /** This page with its range, filters and lines. */
  url: string;
  filters: readonly Filter[];
  faults: readonly TextFault[];
  by: Dimension | null;
  choices: readonly Dimension[];
  /** An example that fits the page. */
  example: string;
}

export function filterBar({ url, filters, faults, by, choices, example }: FilterBarOptions): Html {
  const lines = html`<nav class="segments" aria-label="Lines of the chart">${[null, ...choices].map(
    (choice) =>
      link(withQuery(url, { by: choice ?? 'none' }), manyOf(choice ?? 'side'), {
        ...{ kind: 'quiet', current: choice === by },
      }),
  )}</nav>`;
  return html`<div class="toolbar">${lines}${box(url, filters, example)}</div>${
    filters.length > 0 && html`<nav class="toolbar" aria-label="Filters">${chips(url, filters)}</nav>`
  }${faults.length > 0 && banner({ tone: 'warn', title: 'Part of the filter was left out', text: faults.map(({ text, message }) => `${text}: ${message}`).join(' ') })}`;
}

function box(url: string, filters: readonly Filter[], example: string): Html {
  const at = url.indexOf('?');
  const kept = [...new URLSearchParams(at < 0 ? '' : url.slice(at + 1))].filter(([name]) => name !== 'q');
  return form(
    {
      action: at < 0 ? url : url.slice(0, at),
      method: 'get',
      csrfToken: null,
      layout: 'inline',
      submit: 'Filter',
      submitKind: 'button',
    },
    [
      kept.map(([name, value]) => hiddenField(name, value)),
      field({
        kind: 'search',
        name: 'q',
        label: 'Filter',
        placeholder: example,
        value: printFilters(filters),
        maxLength: 1_000,
        isCode: true,
      }),
    ],
  );
}

/** One for each value; following it takes the value away. */
function chips(url: string, filters: readonly Filter[]): Content {
  const all = filters.flatMap((filter) => filter.values.map((value) => ({ filter, value })));
  return [
    all.map(({ filter, value }) => {
      const name = `${filter.is ? '' : 'not '}${dimensionTable[filter.dimension].word} ${value}`;
      const values = filter.values.filter((each) => each !== value);
      const rest = printFilters(filters.map((each) => (each === filter ? { ...each, values } : each)));
      return link(withQuery(url, { q: rest === '' ? undefined : rest }), `${name} ×`, {
        kind: 'button',
        label: `Remove the filter ${name}`,
      });
    }),
    all.length > 1 && link(withQuery(url, { q: undefined }), 'Remove all filters', { kind: 'quiet' }),
  ];
}
