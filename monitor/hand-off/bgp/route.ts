/**
 * Routes that stop an attack: a blackhole (RFC 7999) or filters (Flowspec, RFC 8955 and 8956), as bytes of BGP.
 *
 * A route is told from others by its family and its reachability (NLRI): announcing the same one again replaces it.
 */
import { parseAddress } from '#common/ip/index.ts';
import { filterOf } from '#contracts/attack-classes.ts';
import type { Action, AttackVector } from '../action.ts';

/** Address family and subsequent one: IPv4 or IPv6, unicast (1) or Flowspec (133). */
export interface Family {
  afi: 1 | 2;
  safi: 1 | 133;
  name: string;
}

export const families: readonly Family[] = [
  { afi: 1, safi: 1, name: 'IPv4 unicast' },
  { afi: 2, safi: 1, name: 'IPv6 unicast' },
  { afi: 1, safi: 133, name: 'IPv4 Flowspec' },
  { afi: 2, safi: 133, name: 'IPv6 Flowspec' },
];

export interface Route {
  /** The same for the same family and NLRI. */
  key: string;
  family: Family;
  nlri: Buffer;
  /** Null: Flowspec has none. */
  nextHop: Buffer | null;
  /** Attributes of the kind: communities. */
  attributes: Buffer;
}

/** 65535:666, BLACKHOLE. */
const blackholeCommunity = attribute(0xc0, 8, Buffer.from([0xff, 0xff, 0x02, 0x9a]));
/** traffic-rate-bytes 0: drop. */
const dropCommunity = attribute(0xc0, 16, Buffer.from([0x80, 0x06, 0, 0, 0, 0, 0, 0]));

/** An attribute of an UPDATE, with a length of one byte where it fits. */
export function attribute(flags: number, type: number, value: Buffer): Buffer {
  const head =
    value.length > 255
      ? [flags | 0x10, type, value.length >> 8, value.length & 0xff]
      : [flags, type, value.length];
  return Buffer.concat([Buffer.from(head), value]);
}

/** The routes of an action. */
export function routesOf(action: Pick<Action, 'kind' | 'address' | 'target' | 'attack'>): Route[] {
  const bytes = Buffer.from(parseAddress(action.address)!);
  const afi = bytes.length === 4 ? 1 : 2;
  if (action.kind === 'blackhole') {
    const nextHop = afi === 1 ? action.target.nextHop4 : action.target.nextHop6;
    const family = families.find((one) => one.afi === afi && one.safi === 1)!;
    return [
      routeOf(family, Buffer.concat([Buffer.from([bytes.length * 8]), bytes]), {
        nextHop: Buffer.from(parseAddress(nextHop ?? '') ?? []),
        attributes: blackholeCommunity,
      }),
    ];
  }
  const family = families.find((one) => one.afi === afi && one.safi === 133)!;
  const filters = new Map<string, Route>();
  for (const filter of filtersOf(action)) {
    const parts = [prefixPart(action.attack.direction === 'inbound' ? 1 : 2, bytes), ...filter];
    const body = Buffer.concat(parts);
    const route = routeOf(family, Buffer.concat([Buffer.from([body.length]), body]), {
      nextHop: null,
      attributes: dropCommunity,
    });
    filters.set(route.key, route);
  }
  return [...filters.values()];
}

function routeOf(family: Family, nlri: Buffer, rest: Pick<Route, 'nextHop' | 'attributes'>): Route {
  return { key: `${family.afi}/${family.safi} ${nlri.toString('hex')}`, family, nlri, ...rest };
}

/** One filter for each vector that has one; the class of the attack where none has. */
function filtersOf({ attack, address }: Pick<Action, 'attack' | 'address'>): Buffer[][] {
  const isIpv6 = address.includes(':');
  const vectors = attack.vectors.filter((vector) => filterOf(vector.class, vector.protocols));
  const used = vectors.length > 0 ? vectors : [{ class: attack.class, ports: [] }];
  return used.flatMap((vector) => partsOf(vector, isIpv6) ?? []);
}

/** Components of a filter behind the address, in the order of their types. */
function partsOf({ class: name, ports, protocols = [] }: AttackVector, isIpv6: boolean): Buffer[][] | null {
  const filter = filterOf(name, protocols);
  if (filter === null) return null;
  const { protocol, ofVector, flags, isFragment } = filter;
  const allowed = ofVector === 'protocols' ? protocols : protocol ? [protocol[isIpv6 ? 1 : 0]] : [];
  const parts = [
    ...(allowed.length > 0 ? [valuesPart(3, allowed)] : []),
    ...(ofVector === 'source_ports' && ports.length > 0 ? [valuesPart(6, ports)] : []),
    ...(flags ? [flagsPart(flags.set, flags.clear)] : []),
    // Any bit of: is a fragment, first fragment, last fragment.
    ...(isFragment ? [Buffer.from([12, 0x80, 0x0e])] : []),
  ];
  return [parts];
}

/** Type 1 is the destination, 2 the source. IPv6 has an offset before the bytes. */
function prefixPart(type: 1 | 2, bytes: Buffer): Buffer {
  const head = bytes.length === 4 ? [type, 32] : [type, 128, 0];
  return Buffer.concat([Buffer.from(head), bytes]);
}

/** Type 3 is the IP protocol, 6 the source port: equal to one of these, of one byte if all fit. */
function valuesPart(type: 3 | 6, values: readonly number[]): Buffer {
  const isShort = type === 3;
  const last = values.length - 1;
  const items = values.flatMap((value, i) => [
    (i === last ? 0x80 : 0) | (isShort ? 0x01 : 0x11),
    ...(isShort ? [value] : [value >> 8, value & 0xff]),
  ]);
  return Buffer.from([type, ...items]);
}

/** All of `set` are set, none of `clear` is. */
function flagsPart(set: number, clear: number): Buffer {
  return Buffer.from(clear === 0 ? [9, 0x81, set] : [9, 0x01, set, 0xc2, clear]);
}
