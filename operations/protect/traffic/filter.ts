/**
 * Filters of a traffic view: what a customer clicks together or types, such as `app:github.com port:443 -server:web-1`.
 *
 * The text is the only form in URLs. Reading it never throws: what can't be read is named, and the rest counts.
 */
import { canonicalAddress, parsePrefix } from '#common/ip/index.ts';

export const filterDimensions = [
  'server',
  'customer',
  'address',
  'app',
  'port',
  'transport',
  'direction',
  'node',
  'cluster',
] as const;
export type FilterDimension = (typeof filterDimensions)[number];
/** What a customer can filter by: who else is on a node, and where, is not theirs to know. */
export const customerDimensions = filterDimensions.filter(
  (each) => each !== 'customer' && each !== 'node' && each !== 'cluster',
);

export interface TrafficFilter {
  dimension: FilterDimension;
  /** True: everything but these values. */
  isNot: boolean;
  values: readonly string[];
}

export interface ReadFilters {
  filters: TrafficFilter[];
  /** What could not be read, as sentences. */
  faults: string[];
}

/** Values of all filters of one view. */
const valuesMax = 20;

/** A value may stand in double quotes, and must where it has a space or a comma. */
const token = /(-?)([a-z]+):((?:"[^"]*"|[^\s",]+)(?:,(?:"[^"]*"|[^\s",]+))*)|\S+/giu;

export function readFilters(
  text: string,
  allowed: readonly FilterDimension[] = customerDimensions,
): ReadFilters {
  const filters: TrafficFilter[] = [];
  const faults: string[] = [];
  let count = 0;
  for (const [whole, minus, name, list] of text.matchAll(token)) {
    const dimension = allowed.find((each) => each === name?.toLowerCase());
    if (dimension === undefined || list === undefined) {
      faults.push(`“${whole.slice(0, 60)}” is no filter. Write one such as app:example.com or port:443.`);
      continue;
    }
    const values = [...list.matchAll(/"([^"]*)"|([^",]+)/g)]
      .map(([, quoted, plain]) => (quoted ?? plain ?? '').trim())
      .filter((value) => value !== '');
    count += values.length;
    if (count > valuesMax) {
      faults.push(`A view has at most ${valuesMax} filter values. The others were left out.`);
      break;
    }
    const fault = values.map((value) => faultOf(dimension, value)).find((each) => each !== null);
    if (fault) faults.push(fault);
    else if (values.length > 0) add(filters, { dimension, isNot: minus === '-', values });
  }
  return { filters, faults };
}

function faultOf(dimension: FilterDimension, value: string): string | null {
  if (dimension === 'direction' && value !== 'in' && value !== 'out')
    return `direction:${value.slice(0, 20)} is not known. Write direction:in or direction:out.`;
  if (dimension === 'port' && !/^([a-z0-9-]{1,16}\/)?\d{1,5}$/i.test(value))
    return `port:${value.slice(0, 20)} is no port. Write a number such as port:443, or port:udp/53.`;
  if (dimension === 'address' && canonicalAddress(value) === null && parsePrefix(value) === null)
    return `address:${value.slice(0, 50)} is no address. Write one such as 192.0.2.10, or a network such as 192.0.2.0/24.`;
  return null;
}

/** Two filters of one dimension and sign are one with the values of both. */
function add(filters: TrafficFilter[], filter: TrafficFilter): void {
  const at = filters.findIndex((each) => each.dimension === filter.dimension && each.isNot === filter.isNot);
  if (at < 0) filters.push({ ...filter, values: [...new Set(filter.values)] });
  else filters[at] = { ...filter, values: [...new Set([...filters[at]!.values, ...filter.values])] };
}

/** The text of these filters, which `readFilters` reads as the same. */
export function writeFilters(filters: readonly TrafficFilter[]): string {
  return filters
    .map(
      ({ dimension, isNot, values }) => `${isNot ? '-' : ''}${dimension}:${values.map(writeValue).join(',')}`,
    )
    .join(' ');
}

// A quote can't stand inside quotes, so a value loses it: no name of ours has one.
const writeValue = (value: string) => (/^[^\s",]+$/.test(value) ? value : `"${value.replaceAll('"', '')}"`);

/** These filters and one value more; the same where it is there already. */
export function withFilter(
  filters: readonly TrafficFilter[],
  dimension: FilterDimension,
  value: string,
  isNot = false,
): TrafficFilter[] {
  const all = [...filters];
  add(all, { dimension, isNot, values: [value] });
  return all;
}

/** These filters without one value. */
export function withoutFilter(
  filters: readonly TrafficFilter[],
  { dimension, isNot }: TrafficFilter,
  value: string,
): TrafficFilter[] {
  return filters
    .map((each) =>
      each.dimension === dimension && each.isNot === isNot
        ? { ...each, values: each.values.filter((one) => one !== value) }
        : each,
    )
    .filter((each) => each.values.length > 0);
}

/** Whether a thing passes the filters of one dimension; `matches` compares it with a value. */
export function passes(
  filters: readonly TrafficFilter[],
  dimension: FilterDimension,
  matches: (value: string) => boolean,
): boolean {
  return filters
    .filter((each) => each.dimension === dimension)
    .every(({ isNot, values }) => values.some(matches) !== isNot);
}
