/** Links into the explorer: what a page shows of something, as a filter that can be added to. */
import type { FastifyRequest } from 'fastify';
import type { Dimension } from '#monitor/explorer/index.ts';
import * as kit from '#service-kit/explorer/index.ts';
import { type Content, link, type RangeName } from '#service-kit/pages/index.ts';

type Filters = Readonly<Partial<Record<Dimension, string>>>;

interface Exploring {
  /** `none`: in and out, as the charts of pages; by default what the filters leave open. */
  by?: Dimension | 'none';
  /** The range of the present page where its URL names none; by default 24 hours, as the explorer's. */
  rangeName?: RangeName;
}

/**
 * URL of the explorer with these values as filters, over the range of the present page. Its totals are those of the page: counters of
 * addresses where nothing else is filtered and grouped by, else usage by application.
 */
export function exploreHref(
  request: FastifyRequest,
  siteId: number,
  filters: Filters = {},
  { by, rangeName }: Exploring = {},
): string {
  const { range = rangeName, from, to } = request.query as Record<string, string | undefined>;
  return kit.exploreHref(`/sites/${siteId}/explore`, filters, { range, from, to, by });
}

/** A button for the header of a page. */
export const exploreButton = (
  request: FastifyRequest,
  siteId: number,
  filters: Filters,
  exploring: Exploring,
): Content => link(exploreHref(request, siteId, filters, exploring), 'Explore', { kind: 'button' });
