/** How the explorer is asked: its filters, and what is drawn. */
import { type FilterDimension, writeFilters } from '#operations/protect/index.ts';
import {
  choice,
  compareChoice,
  type FilterChip,
  filterForm,
  shapeChoice,
  topChoice,
  unitChoice,
} from '#service-kit/explorer/index.ts';
import { banner, type Content } from '#service-kit/pages/index.ts';
import { type ExplorerPlace, manyOf } from './place.ts';
import { negateHref, removeHref, type TrafficView, tops } from './traffic-view.ts';

/** What the form keeps of the URL without a field of its own. */
const kept = ['range', 'from', 'to', 'out', 'tab', 'tables'] as const;

/** A value as people know it: a server or a customer may be filtered by its number. */
export type LabelOf = (dimension: FilterDimension, value: string) => string;

export function exploreForm(place: ExplorerPlace, view: TrafficView, labelOf: LabelOf): Content {
  const grouped = place.dimensions.map((value) => ({ value, label: manyOf(value) }));
  return filterForm({
    ...{ path: place.path, completePath: `${place.path}complete`, url: view.url, kept },
    box: { label: 'Filter', value: view.typed, example: place.example, maxLength: 1000 },
    choices: [
      choice('by', 'By', view.by, grouped),
      unitChoice(view.measure),
      shapeChoice(view.shape),
      topChoice(view.top, tops),
      compareChoice(view.isCompared),
    ],
    removeAll: 'Remove all filters',
    chips: view.filters.map((filter): FilterChip => {
      const values = filter.values.map((value) => {
        const text = labelOf(filter.dimension, value);
        const label = `Remove the filter ${filter.isNot ? 'not ' : ''}${filter.dimension} ${text}`;
        return { text, href: removeHref(view, filter, value), label };
      });
      const label = `${writeFilters([filter])}: change to ${filter.isNot ? 'is' : 'is not'}`;
      return {
        ...{ name: filter.dimension, word: filter.isNot ? 'is not' : 'is', values },
        opposite: { href: negateHref(view, filter), label },
      };
    }),
    faults: faults(view),
  });
}

function faults({ faults: ofFilters, measureFault }: TrafficView): Content {
  return [
    ofFilters.length > 0 &&
      banner({ tone: 'warn', title: 'Part of the filter was left out', text: ofFilters.join(' ') }),
    measureFault !== null && banner({ tone: 'info', title: 'Shown in bits', text: measureFault }),
  ];
}
