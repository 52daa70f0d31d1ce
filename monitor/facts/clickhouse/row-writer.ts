/**
 * Rows in ClickHouse's format TabSeparated. Numbers are whole; addresses are written as their bytes (`\xC0\x00…`), so that columns
 * hold what they compare by.
 */
import { parseAddress } from '#common/ip/index.ts';

/** Addresses whose text is remembered between rows. */
const knownMax = 65_536;
let known = new Map<string, string>();

/** Limits counters of a sensor to values that a double holds exactly. */
const counterMax = Number.MAX_SAFE_INTEGER;

/** A counter as it is stored. */
export const counter = (value: number): string => String(Math.min(value, counterMax));

const specials: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\0': '\\0',
  '\b': '\\b',
  '\f': '\\f',
  "'": "\\'",
};

/** Text of a column. */
export const escaped = (value: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the format escapes exactly these.
  /[\\\t\n\r\0\b\f']/.test(value) ? value.replace(/[\\\t\n\r\0\x08\f']/g, (one) => specials[one]!) : value;

/** The bytes of an address; none for null. */
export function addressBytes(address: string | null): string {
  if (address === null) return '';
  const held = known.get(address);
  if (held !== undefined) return held;
  const bytes = parseAddress(address);
  if (!bytes) throw new Error(`${address} is no address`);
  let written = '';
  for (const byte of bytes) written += `\\x${byte.toString(16).padStart(2, '0')}`;
  if (known.size >= knownMax) known = new Map();
  known.set(address, written);
  return written;
}

/** Rows of one table and upload. */
export interface Rows {
  columns: readonly string[];
  /** Lines, each with its end. */
  lines: string[];
}
