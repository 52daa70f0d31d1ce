/** Random queries of a site's traffic: every dimension and every filter, with values of the asker's site and of another. */
import { type Dimension, dimensions } from '#monitor/explorer/index.ts';
import type { Random } from '../../operations/customer-api/random.ts';

/** What a site has, as it can be named in a query. */
export type SiteValues = Readonly<Record<Dimension, readonly string[]>>;

export interface AskedQuery {
  /** After `?`. */
  text: string;
  /** Where it is asked. */
  way: 'query' | 'series' | 'csv' | 'dimensions' | 'chart' | 'table' | 'complete';
  /** Everything that was typed, which an answer may repeat. */
  typed: string;
}

const ways = ['query', 'query', 'series', 'csv', 'dimensions', 'chart', 'table', 'complete'] as const;

/** Traffic is in the minutes of this range, seconds. */
export function randomSiteQuery(
  random: Random,
  own: SiteValues,
  other: SiteValues,
  { from, to }: { from: number; to: number },
): AskedQuery {
  const pick = <T>(all: readonly T[]): T => all[random.below(all.length)]!;
  const whose = () => (random.below(2) === 0 ? own : other);
  const way = pick(ways);
  const dimension = pick(dimensions);
  if (way === 'dimensions' || way === 'complete') {
    const value = pick(whose()[dimension]);
    const typed = random.below(2) === 0 ? '' : value.slice(0, 1 + random.below(value.length));
    const text = way === 'complete' ? { q: `${dimension}:${typed}` } : { dimension, typed };
    return { way, text: String(new URLSearchParams(text)), typed };
  }
  const filters = dimensions
    .filter(() => random.below(6) === 0)
    .map((one) => {
      const values = Array.from({ length: 1 + random.below(3) }, () => pick(whose()[one]));
      return `${random.below(3) === 0 ? '-' : ''}${one}:${values.map((value) => `"${value}"`).join(',')}`;
    });
  const start = from + random.below((to - from) / 60) * 60;
  const utc = (second: number) => `${new Date(second * 1000).toISOString().slice(0, 16)}Z`;
  const by = random.shuffle(dimensions).slice(0, way === 'query' ? random.below(3) : 1);
  const query = new URLSearchParams({
    range: 'custom',
    from: utc(start),
    // Before now, so that no minute is still in progress.
    to: utc(Math.min(to, start + (1 + random.below(60)) * 60)),
    ...(filters.length > 0 && { q: filters.join(' ') }),
    ...(by.length > 0 && { by: by.join(',') }),
    measure: pick(['bytes', 'packets']),
    order: pick(['size', 'in', 'out']),
    step: pick(['auto', 'none', '60', '600', '3600']),
    top: pick(['1', '10', '1000']),
    ...(random.below(4) === 0 && { compare: 'previous' }),
    ...(way === 'csv' && { format: 'csv' }),
    ...(way === 'series' && { format: 'series' }),
    ...(way === 'table' && { format: 'json', table: by[0]! }),
  });
  if (way === 'chart' || way === 'table') {
    query.delete('order');
    query.delete('step');
  }
  return { way, text: String(query), typed: filters.join(' ') };
}
