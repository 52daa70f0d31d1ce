/**
 * Values of dimensions as text: what people type, in one spelling.
 *
 * An address that is not globally unique may name its segment: `10.0.0.9%br0`. A network stands for every address in it.
 */
import { canonicalAddress, formatPrefix, parsePrefix } from '#common/ip/index.ts';
import type { Dimension } from './query.ts';

/** Short names that are typed as well. */
const aliases: Readonly<Record<string, Dimension>> = {
  app: 'application',
  ip: 'address',
  host: 'address',
  vm: 'server',
  proto: 'transport',
  protocol: 'transport',
  node: 'sensor',
  asn: 'as',
};

/** The dimension of this name or short name; null: there is none. */
export function parseDimension(name: string, known: readonly Dimension[]): Dimension | null {
  const lower = name.toLowerCase();
  return known.find((one) => one === lower) ?? (Object.hasOwn(aliases, lower) ? aliases[lower]! : null);
}

/** By number; others are written as the number. */
const transports = new Map([
  ['icmp', 1],
  ['igmp', 2],
  ['tcp', 6],
  ['udp', 17],
  ['gre', 47],
  ['esp', 50],
  ['ah', 51],
  ['icmpv6', 58],
  ['ospf', 89],
  ['sctp', 132],
]);
const transportNames = new Map([...transports].map(([name, number]) => [number, name]));

export const transportText = (protocol: number): string => transportNames.get(protocol) ?? String(protocol);
/** Of text that `parseValue` gave. */
export const transportNumber = (text: string): number => transports.get(text) ?? Number(text);

export const directions = ['outbound', 'inbound', 'internal', 'transit'] as const;
export const scopes = ['uplink', 'bridge'] as const;

/** A port that is none, as of ICMP. */
export const noPort = 'none';

const textMax = 253;

export type ParsedValue = { value: string } | { fault: string };

const oneOf = (text: string, values: readonly string[], dimension: Dimension): ParsedValue =>
  values.includes(text.toLowerCase())
    ? { value: text.toLowerCase() }
    : { fault: `${text} is no ${dimension}. Use ${values.join(', ')}.` };

/** The one spelling of a value, or what is wrong with it. */
export function parseValue(dimension: Dimension, typed: string): ParsedValue {
  const text = typed.trim();
  if (text === '') return { fault: `Write a value after ${dimension}:.` };
  if (text.length > textMax || /\p{Cc}|\p{Cs}/u.test(text))
    return { fault: `A value has at most ${textMax} characters and no control characters.` };
  switch (dimension) {
    case 'address':
    case 'peer':
      return parsePlace(dimension, text);
    case 'port':
      return parsePort(text);
    case 'transport':
      return parseTransport(text);
    case 'direction':
      return oneOf(text, directions, dimension);
    case 'scope':
      return oneOf(text, scopes, dimension);
    case 'country':
      return parseCountry(text);
    case 'as':
      return parseAs(text);
    default:
      return { value: text };
  }
}

const countryNames = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });

/** In English; null: there is no such country. */
export const countryName = (code: string): string | null => countryNames.of(code) ?? null;

function parseCountry(text: string): ParsedValue {
  const code = text.toUpperCase();
  if (/^[A-Z]{2}$/.test(code) && countryName(code) !== null) return { value: code };
  return { fault: `${text} is no country. Use its two letters, as DE.` };
}

function parseAs(text: string): ParsedValue {
  const number = /^(?:AS)?([1-9]\d{0,9})$/i.exec(text)?.[1];
  if (number !== undefined && Number(number) < 2 ** 32) return { value: `AS${number}` };
  return { fault: `${text} is no autonomous system. Write its number, as AS64496.` };
}

function parsePlace(dimension: 'address' | 'peer', text: string): ParsedValue {
  const [bare, segment] = splitSegment(text);
  if (segment !== null && dimension === 'peer') return { fault: 'A peer has no segment: leave out %.' };
  const address = canonicalAddress(bare);
  if (address !== null) return { value: segment === null ? address : `${address}%${segment}` };
  const prefix = bare.includes('/') ? parsePrefix(bare) : null;
  if (prefix !== null && segment === null) return { value: formatPrefix(prefix) };
  const example = dimension === 'peer' ? '198.51.100.0/24' : '192.0.2.10';
  return {
    fault: `${text} is no address and no network. Write it like ${example}; host bits of a network are zero.`,
  };
}

/** An address and the segment after `%`; null: no segment. */
export function splitSegment(text: string): [address: string, segment: string | null] {
  const at = text.indexOf('%');
  return at < 0 ? [text, null] : [text.slice(0, at), text.slice(at + 1)];
}

function parsePort(text: string): ParsedValue {
  if (text.toLowerCase() === noPort) return { value: noPort };
  const isPort = /^(0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535;
  return isPort ? { value: text } : { fault: `${text} is no port. Use 0 to 65535, or ${noPort}.` };
}

function parseTransport(text: string): ParsedValue {
  const lower = text.toLowerCase();
  if (transports.has(lower)) return { value: lower };
  if (/^(0|[1-9]\d{0,2})$/.test(text) && Number(text) <= 255) return { value: transportText(Number(text)) };
  return { fault: `${text} is no transport. Use tcp, udp, icmp or the number of an IP protocol.` };
}
