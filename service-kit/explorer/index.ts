/**
 * The explorer of traffic, as all pages have it: one language of filters with its completion, the URL of a view, one answer, and
 * the page that shows it with its files.
 *
 * A program says which dimensions it has (`ExplorerBox`), what names mean to whom, and reads an `Answer`; nothing here reads
 * traffic. The look is of `pages`, saved views themselves are `saved-views`.
 */
export {
  type Amount,
  type Answer,
  type Apart,
  type Course,
  compareNames,
  type Limit,
  minus,
  type Ordered,
  orderOf,
  percentile95,
  type Row,
  type RowDetails,
  restRates,
  seriesOf,
  shareOut,
  sizeOf,
  sumOf,
  type Value,
  wholeRates,
  withoutSteps,
} from './answer.ts';
export {
  answerChart,
  type ChartAround,
  chartUnit,
  type FlowEnd,
  type FlowPair,
  flowGraph,
  totalsOfNext,
  unclassifiedPairs,
} from './answer-chart.ts';
export type { Line } from './answer-table.ts';
export { changeText } from './answer-table.ts';
export {
  countryName,
  type Dimension,
  dimensions,
  dimensionTable,
  noPort,
  parseValue,
} from './dimensions.ts';
export {
  type AnsweredTable,
  amountText,
  type ExplorerBody,
  explorerBody,
  explorerPage,
  type FlowPicture,
  savedViewLinks,
  savedViewsSection,
  stepText,
} from './explorer-page.ts';
export { exploreForm } from './filter-form.ts';
export {
  completeFilters,
  completionsMax,
  type Filter,
  filterTextMax,
  parseFilters,
  passes,
  printFilters,
  type Sides,
  sidesOf,
  type TextFault,
} from './filter-text.ts';
export {
  type ExplorerBox,
  type ExploreView,
  exploreHref,
  groupOf,
  type Measure,
  measures,
  oneOf,
  type Parsed,
  type Question,
  readQuestion,
  readUrl,
  readView,
  topDefault,
  type UrlReader,
  type UrlValues,
  viewQueryOf,
} from './view.ts';
