/** Links to the pages of addresses. An address that is not globally unique needs its segment as well. */
import type { AddressPlace } from '#monitor/devices/index.ts';
import { type Content, code, html, withQuery } from '#service-kit/pages/index.ts';

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
