/** Values that the reader reaches, for the completion of filters. */
import { type Exploration, type RankedDimension, serverNamer } from '#operations/protect/index.ts';
import { completionsMax, type Dimension } from '#service-kit/explorer/index.ts';

/** Values of which those that hold the text are offered. */
const valuesMax = 500;

export async function listValues(
  explored: Exploration,
  dimension: Dimension,
  typed: string,
): Promise<string[]> {
  const values = await readValues(explored, dimension as RankedDimension);
  return [...new Set(values)].filter((value) => value.toLowerCase().includes(typed)).slice(0, completionsMax);
}

async function readValues(explored: Exploration, dimension: RankedDimension): Promise<string[]> {
  const { reached } = explored;
  const sorted = (values: string[]) => values.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  switch (dimension) {
    case 'server':
      return sorted(reached.map(serverNamer(reached)));
    case 'customer':
      return sorted(reached.map(({ tenantName }) => tenantName));
    case 'node':
      return sorted(reached.map(({ node }) => node ?? 'none'));
    case 'cluster':
      return sorted(reached.map(({ clusterName }) => clusterName));
    default: {
      const { rows } = await explored.rank(dimension, { limit: valuesMax });
      return rows.flatMap(({ key }) => key[0]!.value ?? []);
    }
  }
}
