/** Finds servers by the beginnings of words, their id, an address in any notation, or the beginning of one. */
import { formatAddress } from '#common/ip/index.ts';
import { readAddress, readAddressRange } from '#common/ip/typed-address.ts';
import * as views from '#operations/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Scope } from './authorise.ts';

export interface FoundServers {
  servers: views.ServerHit[];
  addresses: views.AddressHit[];
}

const textMax = 100;

/** Matches within the scope, at most `limit` of each kind; an empty text finds nothing. */
export async function findServers(
  db: Queryable,
  scope: Scope,
  typed: string,
  limit: number,
): Promise<FoundServers> {
  const text = typed.slice(0, textMax).trim();
  const words = views.searchWords(text);
  if (words.length === 0) return { servers: [], addresses: [] };
  const bytes = text.endsWith('::') ? null : readAddress(text);
  const address = bytes && formatAddress(bytes);
  const range = address === null ? readAddressRange(text) : { first: address, last: address };
  const id = /^\d{1,15}$/.test(text) ? Number(text) : null;
  const [servers, addresses] = await Promise.all([
    address === null ? views.searchServers(db, scope, { id, words }, limit) : [],
    range ? views.searchAddresses(db, scope, range, limit) : [],
  ]);
  return { servers, addresses };
}
