/**
 * The explorer of traffic, as all pages have it: one language of filters with its completion, the URL of a view, the form, saved
 * views, flows, and parts of tables.
 *
 * A program says which dimensions it has (`ExplorerBox`), what names mean to whom, and reads the traffic; nothing here does. The
 * look is of `pages`, saved views themselves are `saved-views`.
 */
export { changeText } from './change-text.ts';
export { completeFilters, completionsMax, type ListValues } from './complete.ts';
export {
  countryName,
  type Dimension,
  dimensions,
  dimensionTable,
  manyOf,
  nameOf,
  noPort,
  parseValue,
} from './dimensions.ts';
export { exploreForm, pictureTabs } from './filter-form.ts';
export {
  type Filter,
  type FilterBox,
  filterTextMax,
  parseFilters,
  passes,
  printFilters,
  type Sides,
  sidesOf,
  type TextFault,
} from './filter-text.ts';
export { type FlowEnd, type FlowPair, flowGraph, totalsOfNext, unattributedPairs } from './flow-graph.ts';
export { type ShownView, savedViewLinks, savedViewsSection } from './saved-views-section.ts';
export {
  type ExplorerBox,
  groupOf,
  type Measure,
  measures,
  oneOf,
  type Parsed,
  type Question,
  readQuestion,
  readUrl,
  topDefault,
  type UrlReader,
  type UrlValues,
} from './url-values.ts';
export { courseCell, valueCell } from './value-cell.ts';
export {
  type ExploreView,
  exploreHref,
  nothingIn,
  onlyHref,
  readView,
  sortNames,
  viewQueryOf,
  withoutHref,
} from './view.ts';
