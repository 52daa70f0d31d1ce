/** Whole texts of the filter box, whose last word is completed: names of dimensions, then values that the reader reaches. */
import {
  type Exploration,
  type FilterDimension,
  serverNamer,
  writeFilters,
} from '#operations/protect/index.ts';
import { splitTyped } from '#service-kit/explorer/index.ts';
import type { ExplorerPlace } from './place.ts';

const completionsMax = 10;
/** Values of which those that hold the text are offered. */
const valuesMax = 500;

export async function completeFilter(
  explored: Exploration,
  place: ExplorerPlace,
  typed: string,
): Promise<string[]> {
  const last = splitTyped(typed);
  if (last === null) return [];
  const { head, minus, name, word } = last;
  if (name === null)
    return place.filters
      .filter((one) => one.startsWith(word.toLowerCase()))
      .map((one) => `${head}${minus}${one}:`);
  const dimension = place.filters.find((one) => one === name.toLowerCase());
  if (dimension === undefined) return [];
  const text = word.replaceAll('"', '').toLowerCase();
  const values = await valuesOf(explored, dimension);
  return [...new Set(values)]
    .filter((value) => value.toLowerCase().includes(text))
    .slice(0, completionsMax)
    .map((value) => `${head}${writeFilters([{ dimension, isNot: minus === '-', values: [value] }])}`);
}

async function valuesOf(explored: Exploration, dimension: FilterDimension): Promise<string[]> {
  const sorted = (values: Iterable<string>) =>
    [...values].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  switch (dimension) {
    case 'server':
      return sorted(explored.reached.map(serverNamer(explored.reached)));
    case 'customer':
      return sorted(new Set(explored.reached.map(({ tenantName }) => tenantName)));
    case 'node':
      return sorted(new Set(explored.reached.map(({ node }) => node ?? 'none')));
    case 'cluster':
      return sorted(new Set(explored.reached.map(({ clusterName }) => clusterName)));
    case 'direction':
      return ['in', 'out'];
    default: {
      const { rows } = await explored.rank(dimension, { limit: valuesMax });
      return rows.flatMap(({ value }) => value ?? []);
    }
  }
}
