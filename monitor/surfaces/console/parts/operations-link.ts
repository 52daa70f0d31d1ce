/** Links out of the monitor to the operators' console's page of the same thing; nothing where single sign-on is not set up. */
import { canonicalAddress } from '#common/ip/index.ts';
import type { Place } from '#contracts/sign-on/index.ts';
import type { Actor } from '#monitor/operators/index.ts';
import type { Filter } from '#service-kit/explorer/index.ts';
import { type Content, link } from '#service-kit/pages/index.ts';
import type { SignOn } from '#service-kit/sign-on/index.ts';

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
