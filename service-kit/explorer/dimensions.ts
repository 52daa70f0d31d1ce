/**
 * What traffic is filtered and grouped by, in all explorers: how each dimension is named and typed, and the one spelling of its values.
 *
 * An address that is not globally unique may name its segment: `10.0.0.9%br0`. A network stands for every address in it.
 */
import { canonicalAddress, formatPrefix, parsePrefix } from '#common/ip/index.ts';
import { protocolNumber, transportName } from '#contracts/ip-protocols.ts';

export type ParsedValue = { value: string } | { fault: string };

interface DimensionRow {
  /** As it is typed. Two dimensions may have one word: their values say which one it is. */
  word: string;
  /** Other words that are read. */
  aliases?: readonly string[];
  one: string;
  many: string;
  /** In place of a value that is not known. */
  none?: string;
  /** All there are, where they are few. */
  values?: readonly string[];
  /** The one spelling of a value; by default it stays as it is typed. */
  parse?: (text: string) => ParsedValue;
  /** Values are written as they are typed. */
  isCode?: true;
  /** Grouped by only: its rows are filtered by this one. */
  filteredBy?: string;
  /** One value of this dimension has one value of that one. */
  follows?: string;
}

/** In the order in which they are offered. */
const table = {
  server: { word: 'server', aliases: ['vm'], one: 'Server', many: 'Servers', none: 'No server' },
  customer: { word: 'customer', one: 'Customer', many: 'Customers', none: 'No customer', follows: 'server' },
  address: {
    ...{ word: 'address', aliases: ['ip', 'host'], one: 'Address', many: 'Addresses', isCode: true },
    none: 'Between other networks',
    parse: (text) => parsePlace(text, '192.0.2.10'),
  },
  device: { word: 'device', one: 'Device', many: 'Devices', none: 'Unknown device' },
  application: {
    ...{ word: 'app', aliases: ['application'], one: 'Application', many: 'Applications' },
    none: 'Unknown application',
  },
  service: {
    ...{ word: 'app', one: 'Application', many: 'Applications and ports' },
    ...{ filteredBy: 'application', follows: 'application' },
  },
  peer: {
    ...{ word: 'peer', one: 'Peer', many: 'Peers', none: 'Unknown peer', isCode: true },
    parse: (text) =>
      text.includes('%')
        ? { fault: 'A peer has no segment: leave out %.' }
        : parsePlace(text, '198.51.100.0/24'),
  },
  country: {
    ...{ word: 'country', one: 'Country', many: 'Countries', none: 'Unknown country', parse: parseCountry },
  },
  as: { word: 'as', aliases: ['asn'], one: 'AS', many: 'ASs', none: 'Unknown AS', parse: parseAs },
  port: { word: 'port', one: 'Port', many: 'Ports', none: 'No port', isCode: true, parse: parsePort },
  transport: {
    ...{ word: 'transport', aliases: ['proto', 'protocol'], one: 'Transport', many: 'Transports' },
    ...{ none: 'Unknown transport', parse: parseTransport },
  },
  /** Which bytes count: those to the server, or those from it. */
  side: { word: 'direction', one: 'Direction', many: 'In and out', values: ['in', 'out'] },
  /** Who opened a connection. */
  direction: {
    ...{ word: 'direction', one: 'Direction', many: 'Directions', none: 'Unknown direction' },
    values: ['outbound', 'inbound', 'internal', 'transit'],
  },
  /** Known where nodes are not; a node means the sensor on it. */
  sensor: { word: 'sensor', aliases: ['node'], one: 'Sensor', many: 'Sensors', none: 'Unknown sensor' },
  scope: {
    ...{ word: 'scope', one: 'Scope', many: 'Scopes', none: 'Unknown scope', values: ['uplink', 'bridge'] },
  },
  node: { word: 'node', one: 'Node', many: 'Nodes', none: 'none', isCode: true, follows: 'server' },
  cluster: { word: 'cluster', one: 'Cluster', many: 'Clusters', none: 'none', follows: 'server' },
} as const satisfies Record<string, DimensionRow>;

export type Dimension = keyof typeof table;
export const dimensionTable: Readonly<Record<Dimension, DimensionRow>> = table;
export const dimensions = Object.keys(table) as Dimension[];

export const nameOf = (dimension: Dimension): string => table[dimension].one;
export const manyOf = (dimension: Dimension): string => table[dimension].many;
/** By what rows of this dimension are filtered. */
export const filterOf = (dimension: Dimension): Dimension =>
  (dimensionTable[dimension].filteredBy as Dimension | undefined) ?? dimension;

/** Dimensions of this word, in any case of its letters. */
export function dimensionsOfWord(word: string): Dimension[] {
  const name = word.toLowerCase();
  return dimensions.filter(
    (one) => dimensionTable[one].word === name || dimensionTable[one].aliases?.includes(name),
  );
}

/** A port that is none, as of ICMP. */
export const noPort = 'none';

const textMax = 253;

/** The one spelling of a value, or what is wrong with it. */
export function parseValue(dimension: Dimension, typed: string): ParsedValue {
  const { word, values, parse } = dimensionTable[dimension];
  const text = typed.trim();
  if (text === '') return { fault: `Write a value after ${word}:.` };
  if (text.length > textMax || /\p{Cc}|\p{Cs}/u.test(text))
    return { fault: `A value has at most ${textMax} characters and no control characters.` };
  if (values === undefined) return parse?.(text) ?? { value: text };
  const lower = text.toLowerCase();
  return values.includes(lower)
    ? { value: lower }
    : { fault: `${text} is no ${word}. Use ${values.join(', ')}.` };
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

function parsePlace(text: string, example: string): ParsedValue {
  const [bare, segment] = splitSegment(text);
  const address = canonicalAddress(bare);
  if (address !== null) return { value: segment === null ? address : `${address}%${segment}` };
  const prefix = bare.includes('/') ? parsePrefix(bare) : null;
  if (prefix !== null && segment === null) return { value: formatPrefix(prefix) };
  return {
    fault: `${text} is no address and no network. Write it like ${example}; host bits of a network are zero.`,
  };
}

/** An address and the segment after `%`; null: no segment. */
function splitSegment(text: string): [address: string, segment: string | null] {
  const at = text.indexOf('%');
  return at < 0 ? [text, null] : [text.slice(0, at), text.slice(at + 1)];
}

/** `443` of any transport, `udp/53` of one, or `none`. */
function parsePort(text: string): ParsedValue {
  if (text.toLowerCase() === noPort) return { value: noPort };
  const [, transport, port] = /^(?:([^/]*)\/)?(0|[1-9]\d{0,4})$/.exec(text) ?? [];
  const known = transport === undefined ? null : parseTransport(transport);
  if (port === undefined || Number(port) > 65_535 || (known && 'fault' in known))
    return {
      fault: `${text} is no port. Use 0 to 65535, one with its transport such as udp/53, or ${noPort}.`,
    };
  return { value: known === null ? port : `${known.value}/${port}` };
}

function parseTransport(text: string): ParsedValue {
  const number = /^\d{1,3}$/.test(text) ? Number(text) : protocolNumber(text.toLowerCase());
  if (number !== null && number <= 255) return { value: transportName(number) };
  return { fault: `${text} is no transport. Use tcp, udp, icmp or the number of an IP protocol.` };
}
