/**
 * What the pages of both explorers of traffic have alike: the form with its filters, saved views, flows, and parts of tables.
 *
 * A page says what its filters and values are and where links lead; nothing here knows a dimension or reads traffic. The look is
 * of `pages`, saved views themselves are `saved-views`.
 */
export { changeText } from './change-text.ts';
export {
  choice,
  compareChoice,
  type FilterChip,
  filterForm,
  pictureTabs,
  shapeChoice,
  topChoice,
  unitChoice,
} from './filter-form.ts';
export { type FlowEnd, type FlowPair, flowGraph, totalsOfNext, unattributedPairs } from './flow-graph.ts';
export { type ShownView, savedViewLinks, savedViewsSection } from './saved-views-section.ts';
export { splitTyped, type TypedFilter } from './typed-filter.ts';
export { courseCell, valueCell } from './value-cell.ts';
