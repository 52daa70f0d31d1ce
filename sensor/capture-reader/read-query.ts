/** Parses the options of `sensor read`: addresses, names, ports and protocols, a time span, an order. */
import {
  canonicalAddress,
  formatPrefix,
  type Prefix,
  parseAddress,
  parsePrefix,
  prefixContains,
} from '#common/ip/index.ts';
import { protocolNumber } from '#contracts/ip-protocols.ts';
import { NotACaptureError } from '#sensor/capture-files/index.ts';

/** The options as text. */
export interface ReadOptions {
  json?: boolean;
  minutes?: boolean;
  local?: string[];
  host?: string[];
  name?: string[];
  port?: string[];
  protocol?: string[];
  from?: string;
  to?: string;
  sort?: string;
  top?: string;
}

export const sortOrders = ['bytes', 'packets', 'sent', 'received', 'name', 'time'] as const;
export type SortOrder = (typeof sortOrders)[number];

/** A time: absolute in unix seconds, relative to the first packet, or a time of its day in UTC. */
export type Moment = { kind: 'at' | 'after' | 'daytime'; seconds: number };

export interface ReadQuery {
  local: { prefixes: string[]; addresses: string[] };
  hosts: Prefix[];
  /** Lower case; `*` matches any text. Without `*` a part of the name is enough. */
  names: string[];
  ports: number[];
  protocols: number[];
  from: Moment | null;
  to: Moment | null;
  sort: SortOrder;
  /** Number of rows in each table; 0 for all. */
  top: number;
}

const rowsByDefault = 15;

/** The query of these options. Throws `NotACaptureError` with an example of a valid option. */
export function parseQuery(options: ReadOptions): ReadQuery {
  const query = readOptions(options);
  const { from, to } = query;
  if (from && to && from.kind === to.kind && from.seconds >= to.seconds)
    throw new NotACaptureError(`--from ${options.from} is not before --to ${options.to}.`);
  return query;
}

function readOptions(options: ReadOptions): ReadQuery {
  return {
    local: { prefixes: (options.local ?? []).map((text) => localText(text)), addresses: [] },
    hosts: (options.host ?? []).map((text) => prefixOf('--host', text)),
    names: (options.name ?? []).map((text) => text.toLowerCase()),
    ports: (options.port ?? []).map((text) => wholeNumber('--port', text, 65_535)),
    protocols: (options.protocol ?? []).map(protocolOf),
    from: options.from === undefined ? null : momentOf('--from', options.from),
    to: options.to === undefined ? null : momentOf('--to', options.to),
    sort: sortOf(options.sort ?? 'bytes'),
    top: options.top === undefined ? rowsByDefault : wholeNumber('--top', options.top, 1_000_000_000),
  };
}

function prefixOf(option: string, text: string): Prefix {
  const address = canonicalAddress(text);
  const prefix = parsePrefix(address ? `${address}/${address.includes(':') ? 128 : 32}` : text);
  if (prefix) return prefix;
  throw new NotACaptureError(
    `${option} takes an address or a prefix such as 192.0.2.0/24, not ${JSON.stringify(text)}.`,
  );
}

function localText(text: string): string {
  const prefix = parsePrefix(text);
  const address = prefix ? null : canonicalAddress(text);
  if (!prefix && !address)
    throw new NotACaptureError(`--local takes a prefix such as 192.0.2.0/24, not ${JSON.stringify(text)}.`);
  return prefix ? formatPrefix(prefix) : address!;
}

function wholeNumber(option: string, text: string, max: number): number {
  if (/^\d{1,10}$/.test(text) && Number(text) <= max) return Number(text);
  throw new NotACaptureError(`${option} takes a whole number up to ${max}, not ${JSON.stringify(text)}.`);
}

function protocolOf(text: string): number {
  const number = /^\d{1,3}$/.test(text) ? Number(text) : protocolNumber(text.toLowerCase());
  if (number !== null && number <= 255) return number;
  throw new NotACaptureError(
    `--protocol takes a name such as tcp, udp, icmp or gre, or a number up to 255, not ${JSON.stringify(text)}.`,
  );
}

function sortOf(text: string): SortOrder {
  const found = sortOrders.find((order) => order === text);
  if (found) return found;
  throw new NotACaptureError(`--sort takes one of ${sortOrders.join(', ')}, not ${JSON.stringify(text)}.`);
}

const unitSeconds: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600 };

function momentOf(option: string, text: string): Moment {
  const moment = afterStart(text) ?? daytime(text) ?? instant(text);
  if (moment) return moment;
  throw new NotACaptureError(
    `${option} takes a time such as 2026-01-31T12:00:00Z, 12:00:30 (UTC, on the day of the first packet) or +90s after ` +
      `the first packet, not ${JSON.stringify(text)}.`,
  );
}

function afterStart(text: string): Moment | null {
  const [, amount, unit] = /^\+(\d+(?:\.\d+)?)([smh]?)$/.exec(text) ?? [];
  return amount === undefined ? null : { kind: 'after', seconds: Number(amount) * unitSeconds[unit!]! };
}

/** A time of day; 24:00 is the end of the day. */
function daytime(text: string): Moment | null {
  const [, hours, minutes, seconds = '0'] = /^(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?$/.exec(text) ?? [];
  if (hours === undefined || Number(minutes) > 59 || Number(seconds) >= 60) return null;
  const sum = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
  return sum <= 86_400 ? { kind: 'daytime', seconds: sum } : null;
}

/** RFC 3339. `Date.parse` accepts the 30th of February as the 2nd of March, so the day is checked first. */
function instant(text: string): Moment | null {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})T.*(?:Z|[+-]\d{2}:\d{2})$/.exec(text) ?? [];
  if (year === undefined) return null;
  const daysOfMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  const at = Date.parse(text) / 1000;
  return Number(day) > daysOfMonth || Number.isNaN(at) ? null : { kind: 'at', seconds: at };
}

/** Unix seconds of a time in a capture that starts at `firstAt`. */
export function resolveMoment(moment: Moment, firstAt: number): number {
  if (moment.kind === 'at') return moment.seconds;
  return moment.kind === 'after'
    ? firstAt + moment.seconds
    : Math.floor(firstAt / 86_400) * 86_400 + moment.seconds;
}

/** True when one of the prefixes contains the address. */
export function isInPrefixes(prefixes: readonly Prefix[], address: string): boolean {
  const bytes = parseAddress(address);
  return bytes !== null && prefixes.some((prefix) => prefixContains(prefix, bytes));
}

/** True when one of the patterns matches the text, or a part of it for a pattern without `*`. */
export function matchesName(patterns: readonly string[], text: string): boolean {
  return patterns.some((pattern) =>
    pattern.includes('*') ? matchesParts(pattern.split('*'), text) : text.includes(pattern),
  );
}

/**
 * One pass for every pattern: a regular expression with many `.*` would backtrack through every division of the text.
 */
function matchesParts(parts: readonly string[], text: string): boolean {
  const first = parts[0]!;
  const last = parts.at(-1)!;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last))
    return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
