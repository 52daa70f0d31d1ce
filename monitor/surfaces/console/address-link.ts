/** Links to an address's page. One that is not globally unique is known by its segment as well. */
import type { AddressPlace } from '#monitor/devices/index.ts';
import { type Content, code, html, withQuery } from '#service-kit/pages/index.ts';

/** The page of an address; `query` says over which range. */
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
