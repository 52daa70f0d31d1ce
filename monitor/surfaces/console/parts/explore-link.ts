/** Links into the explorer: what a page shows of something, as a filter that can be added to. */
import type { FastifyRequest } from 'fastify';
import { type Dimension, printQueryText } from '#monitor/explorer/index.ts';
import { type Content, link, withQuery } from '#service-kit/pages/index.ts';

type Filters = Readonly<Partial<Record<Dimension, string>>>;

/** URL of the explorer with these values as filters, over the range of the present page. */
export function exploreHref(
  request: FastifyRequest,
  siteId: number,
  filters: Filters = {},
  by?: Dimension,
): string {
  const { range, from, to } = request.query as Record<string, string | undefined>;
  const texts = Object.entries(filters).map(([dimension, value]) => ({
    ...{ dimension: dimension as Dimension, is: true, values: [value] },
  }));
  return withQuery(`/sites/${siteId}/explore`, {
    q: printQueryText(texts) || undefined,
    range,
    from,
    to,
    by,
  });
}

/** A button for the header of a page. */
export const exploreButton = (request: FastifyRequest, siteId: number, filters?: Filters): Content =>
  link(exploreHref(request, siteId, filters), 'Explore', { kind: 'button' });
