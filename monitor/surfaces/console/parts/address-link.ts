/** Links to the pages of addresses. An address that is not globally unique needs its segment as well. */

import type { FastifyRequest } from 'fastify';
import { canonicalAddress, isGloballyUnique, parseAddress } from '#common/ip/index.ts';
import type { Place } from '#contracts/sign-on/index.ts';
import type { AddressPlace } from '#monitor/devices/index.ts';
import type { Dimension } from '#monitor/explorer/index.ts';
import type { Actor } from '#monitor/operators/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { Filter } from '#service-kit/explorer/index.ts';
import * as kit from '#service-kit/explorer/index.ts';
import { type Content, code, html, link, type RangeName, withQuery } from '#service-kit/pages/index.ts';
import type { SignOn } from '#service-kit/sign-on/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { notFound } from '../frame.ts';

/** URL of an address's page; `query` selects the range. */
export function addressHref(
  siteId: number,
  { address, segment }: AddressPlace,
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const path = `/sites/${siteId}/addresses/${encodeURIComponent(address)}`;
  return withQuery(path, { ...query, segment: segment || undefined });
}

/** `10.0.0.5 on br7`. */
export function addressText({ address, segment }: AddressPlace): Content {
  return segment === '' ? code(address) : html`${code(address)} on ${code(segment)}`;
}

// Links into the explorer: what a page shows of something, as a filter that can be added to.

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

// Links out of the monitor to the operators' console's page of the same thing; nothing where single sign-on is not set up.

/** "In operations", or nothing; a button for the header of a page. */
export type OperationsLink = (place: Place) => Content;

/** Read once for a page. */
export async function readOperationsLink(signOn: Pick<SignOn<Actor>, 'links'>): Promise<OperationsLink> {
  const hrefOf = await signOn.links();
  return (place) => hrefOf !== null && link(hrefOf(place), 'In operations', { kind: 'button' });
}

/** What filters of the explorer are about as operations knows it: one server, address or customer; null for anything else. */
export function placeOfFilters(filters: readonly Filter[]): Place | null {
  for (const { dimension, is, values } of filters) {
    const [value = ''] = values;
    if (!is || values.length !== 1) continue;
    const [, clusterId, serverId] = /^(\d{1,15})\/(\d{1,15})$/.exec(value) ?? [];
    if (dimension === 'server' && clusterId && serverId)
      return { kind: 'server', clusterId: Number(clusterId), serverId: Number(serverId) };
    if (dimension === 'customer' && /^\d{1,15}$/.test(value))
      return { kind: 'customer', accountId: Number(value) };
    if (dimension === 'address' && canonicalAddress(value) !== null)
      return { kind: 'address', address: value };
  }
  return null;
}

// The address and segment of a request.

/** The canonical spelling of an address in the path, or a 404. */
export function canonicalOf(text: string): string {
  const address = canonicalAddress(text);
  if (address) return address;
  throw notFound('This is not an IP address. Use the search.');
}

/** The segment to show: the requested one, else the one where the address was seen last; and all other segments. */
export async function segmentOf(
  deps: Pick<ConsoleDeps, 'devices'>,
  site: Site,
  address: string,
  wanted: string | undefined,
): Promise<{ segment: string; others: string[] }> {
  if (isGloballyUnique(parseAddress(address)!)) return { segment: '', others: [] };
  const segments = await deps.devices.listSegments(site.id, address);
  const segment = wanted ?? segments[0] ?? '';
  return { segment, others: segments.filter((other) => other !== segment) };
}
