/** How the explorer is asked: its filters, and what is drawn. */
import { dimensions, printQueryText } from '#monitor/explorer/index.ts';
import {
  choice,
  compareChoice,
  type FilterChip,
  filterForm,
  shapeChoice,
  topChoice,
  unitChoice,
} from '#service-kit/explorer/index.ts';
import type { Content } from '#service-kit/pages/index.ts';
import { type ExploreView, nameOf, negateHref, removeHref, sortNames } from './explore-view.ts';

/** What the form keeps of the URL without a field of its own, beside the order of each table. */
const kept = ['range', 'from', 'to', 'out', 'tab', 'tables', 'step'];
const tops = [5, 10, 20, 50];

/** `serverNames`: by the value of a filter. */
export function exploreForm(view: ExploreView, serverNames: ReadonlyMap<string, string>): Content {
  const { query } = view;
  const path = `/sites/${view.siteId}/explore`;
  const grouped = view.offered.map((one) => ({ value: one as string, label: nameOf(one) }));
  return filterForm({
    ...{ path, completePath: `${path}/complete`, url: view.url },
    kept: [...kept, ...dimensions.flatMap((one) => Object.values(sortNames(one)))],
    box: {
      ...{ label: 'Filters', value: view.typed },
      example: 'app:github.com peer:198.51.100.0/24 port:443 -server:web-1',
    },
    choices: [
      choice('by', 'By', view.by ?? 'none', [{ value: 'none', label: 'In and out' }, ...grouped]),
      unitChoice(query.measure),
      shapeChoice(view.shape),
      topChoice(query.top, tops),
      compareChoice(query.compare !== null),
    ],
    removeAll: 'No filters',
    chips: query.filters.map((filter): FilterChip => {
      const name = nameOf(filter.dimension).toLowerCase();
      const word = filter.is ? 'is' : 'is not';
      const label = `${name} ${word}; change to ${filter.is ? 'is not' : 'is'}`;
      const values = filter.values.map((value) => ({
        text: filter.dimension === 'server' ? (serverNames.get(value) ?? value) : value,
        href: removeHref(view, filter, value),
        label: `Remove ${printQueryText([{ ...filter, values: [value] }])}`,
      }));
      return { name, word, opposite: { href: negateHref(view, filter), label }, values };
    }),
  });
}
