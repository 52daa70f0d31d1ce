/**
 * Finds the MAC that owns an address: the one MAC that sends from it. An address with several MACs has no owner, and a
 * router's MAC owns no address.
 */
import type { KeyedTable } from '../keyed-table.ts';

/** Words in the key of an address: four for the address, one for its version. */
export const hostKeyWords = 5;
/** Words of a host: high part of the MAC with VLAN, low part, owner state. */
export const hostWords = 3;
export const Owner = { unknown: 0, one: 1, conflict: 2 } as const;

/** MACs that sent from a routable remote address. They belong to routers, which forward packets of others. */
export function routerMacs({ keys, words, count }: KeyedTable): Set<string> {
  const macs = new Set<string>();
  for (let record = 0; record < count; record += 1) {
    if (words[record * hostWords + 2] !== Owner.one) continue;
    if (!isRoutable(keys, record * hostKeyWords)) continue;
    macs.add(`${words[record * hostWords]! & 0xffff}|${words[record * hostWords + 1]}`);
  }
  return macs;
}

/** Device that owns the address: segment, VLAN and MAC. Empty when the owner is unknown or a router. */
export function deviceKey(table: KeyedTable, record: number, segment: string, routers: ReadonlySet<string>) {
  const base = record * hostWords;
  if (table.words[base + 2] !== Owner.one) return '';
  const high = table.words[base]!;
  const low = table.words[base + 1]!;
  if (routers.has(`${high & 0xffff}|${low}`)) return '';
  return deviceKeyText(segment, high, low);
}

/** `segment|MAC`, or `segment.VLAN|MAC`; `high`: the VLAN above the MAC's first two bytes. */
export function deviceKeyText(segment: string, high: number, low: number): string {
  const vlan = high >>> 16;
  return `${segment}${vlan > 0 ? `.${vlan}` : ''}|${macText(high & 0xffff, low)}`;
}

function macText(high: number, low: number): string {
  const hex = high.toString(16).padStart(4, '0') + (low >>> 0).toString(16).padStart(8, '0');
  return hex.match(/../g)!.join(':');
}

/** The MAC of an entry of `routerMacs`, as text. */
export function macOfKey(key: string): string {
  const [high, low] = key.split('|');
  return macText(Number(high), Number(low));
}

/**
 * Not unspecified, loopback, link-local or multicast. Packets from those addresses do not show that the sender routes.
 */
function isRoutable(keys: Int32Array, at: number): boolean {
  if (keys[at + 4] === 4) {
    const first = keys[at + 3]! >>> 24;
    return first !== 0 && first !== 127 && first < 224 && keys[at + 3]! >>> 16 !== 0xa9fe;
  }
  return keys[at]! >>> 29 === 1;
}
