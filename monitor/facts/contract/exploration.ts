/** What `explore` is asked and what it answers: sums of a site's range over any filters, by up to two dimensions. */
import { formatPrefix, parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import type { SiteRange } from './facts.ts';

/**
 * Which facts are summed. `addresses`: counters of local addresses, each minute at the strongest capture; `applications`:
 * named usage of captures that count; `pairs`: the same between exact addresses, of the last 24 hours.
 */
export type ExploredSource = 'addresses' | 'applications' | 'pairs';

export type FilterDimension =
  | 'address'
  | 'device'
  | 'application'
  | 'peer'
  | 'port'
  | 'transport'
  | 'direction'
  | 'sensor'
  | 'scope';
/** `server` and `customer` are what `owners` says of the local address, `country` and `as` what `networks` says of the peer. */
export type ExploredDimension = FilterDimension | 'server' | 'customer' | 'country' | 'as';

/** What `addresses` knows; the others know all but peers, which only `pairs` do. */
export const addressDimensions: readonly ExploredDimension[] = [
  'address',
  'server',
  'customer',
  'device',
  'sensor',
  'scope',
];

/**
 * Rows with one of the values, or with `is: false` all others, those without a value too. Addresses are
 * canonical text, a network, or of `address` also `address%segment`; ports a number, of one protocol `17/53`, or `none`; transports a protocol number;
 * sensors an id.
 */
export interface ExploredFilter {
  dimension: FilterDimension;
  is: boolean;
  values: readonly string[];
}

/** Who has an address. Of an address that is not unique the segment counts; blank: wherever it was seen. */
export interface AddressOwner {
  address: string;
  segment: string;
  server: string | null;
  customer: string | null;
}

/** Where a remote address is, as the reader knows it; null: unknown. */
export interface PeerNetwork {
  peer: string;
  country: string | null;
  as: string | null;
}

/** Which facts are summed. */
export interface ExploredReading extends SiteRange {
  source: ExploredSource;
  filters: readonly ExploredFilter[];
  /** Each address and segment at most once. */
  owners: readonly AddressOwner[];
  /** Each peer at most once. */
  networks: readonly PeerNetwork[];
  /** Packets are summed only where they are asked for. */
  measure: 'bytes' | 'packets';
}

/** How they are grouped. */
export interface ExploredView {
  /** At most two. */
  by: readonly ExploredDimension[];
  /** Null: no steps. */
  stepSeconds: number | null;
  /** Of `size`: the measure in both directions; else bytes of one. */
  order: 'size' | 'in' | 'out';
  /** So many of the largest, or exactly these. */
  rows: { limit: number } | { keys: readonly (readonly (string | null)[])[] };
}

export interface Exploration extends ExploredReading, ExploredView {}

export interface ExploredAmount {
  inBytes: number;
  outBytes: number;
  /** Null where the measure is bytes. */
  packets: number | null;
}

export interface Explored {
  /** Largest by the order first; empty without `by`. */
  rows: (ExploredAmount & { key: (string | null)[] })[];
  /** How many keys there are. */
  groups: number;
  total: ExploredAmount;
  /** The part of the total that the sensors' own port scans are, in the measure, both directions; null: the source has none. */
  ownScans: number | null;
  /** Of everything (`row: null`) and of each row by its place, in that order by time; steps without traffic are left out. */
  steps: (ExploredAmount & { timeMs: number; row: number | null })[];
  /** Minutes of each step in which a capture that could see it listened; empty without steps. */
  observed: { timeMs: number; minutes: number }[];
  /** What the engine read; it changes no number. */
  grains: ('minutes' | 'tens' | 'hours' | 'days')[];
}

/** A filter's addresses by kind. */
export interface SplitPlaces {
  addresses: string[];
  networks: string[];
  /** `address` and `segment` of those that name one. */
  segments: { address: string; segment: string }[];
}

export function splitPlaces(values: readonly string[]): SplitPlaces {
  const places: SplitPlaces = { addresses: [], networks: [], segments: [] };
  for (const value of values) {
    const at = value.indexOf('%');
    if (at >= 0) places.segments.push({ address: value.slice(0, at), segment: value.slice(at + 1) });
    else if (value.includes('/')) places.networks.push(formatPrefix(parsePrefix(value)!));
    else places.addresses.push(value);
  }
  return places;
}

/** Whether an address, seen in this segment, is one of these. */
export function isAmong(places: SplitPlaces, address: string, segment: string): boolean {
  const bytes = parseAddress(address)!;
  return (
    places.addresses.includes(address) ||
    places.segments.some((one) => one.address === address && one.segment === segment) ||
    places.networks.some((one) => prefixContains(parsePrefix(one)!, bytes))
  );
}

/** Text of a local address, with its segment where one is known. */
export const placeText = (address: string, segment: string): string =>
  segment === '' ? address : `${address}%${segment}`;
