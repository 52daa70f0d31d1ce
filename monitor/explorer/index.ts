/**
 * Queries of traffic over every dimension: the one way in which the explorer page, the read API and what reads it ask.
 *
 * A query names a site, a range, filters, up to two dimensions to group by and a step. Its numbers are those of the other
 * pages, because they come from the same selection: of an address and minute one capture counts (NET-2.4.2), of a minute
 * and direction one vantage point (NET-2.2.5). Which facts can answer follows from the dimensions alone: counters of
 * addresses where nothing else is asked for, usage by application, and connections between exact addresses for peers,
 * which live for 24 hours (NET-2.2.7). The answer says which it was.
 *
 * A step in which no capture that could see the traffic listened is a gap and never zero. What can't be answered for the
 * range is said in `limits`, and the rest is answered.
 *
 * `query.ts` has the types, `values.ts` the spelling of values, `query-text.ts` and `query-url.ts` the two text forms.
 */
export * from './query.ts';
export {
  type ParsedText,
  parseQueryText,
  printQueryText,
  type TextFault,
  uniteFilters,
} from './query-text.ts';
export { type ParsedQuery, parseQueryUrl, printQueryUrl, type UrlValues } from './query-url.ts';
export { directions, parseDimension, parseValue, scopes, transportText } from './values.ts';
