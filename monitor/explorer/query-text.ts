/**
 * Filters as one line of text: `app:github.com peer:198.51.100.0/24,203.0.113.7 -server:"web 1"`.
 *
 * A minus sign means "is not". Values of a dimension are separated by commas or given one by one; one with a space, a comma
 * or a quotation mark stands in quotation marks, in which a backslash takes the next character as it is.
 */
import { canonicalAddress } from '#common/ip/index.ts';
import { type Dimension, dimensions, type Filter, filterValuesMax } from './query.ts';
import { parseDimension, parseValue } from './values.ts';

/** A part of the text that could not be read. */
export interface TextFault {
  /** As it was typed. */
  text: string;
  message: string;
}

export interface ParsedText {
  filters: Filter[];
  faults: TextFault[];
}

const textMax = 20_000;
/** Faults that are told; who has more has pasted something else. */
const faultsMax = 20;

interface Token {
  raw: string;
  is: boolean;
  name: string | null;
  values: string[];
}

/** Reads what it can; the rest is in `faults`, each with what to write instead, up to a bound of each. */
export function parseQueryText(text: string): ParsedText {
  const faults: TextFault[] = [];
  if (text.length > textMax)
    return {
      filters: [],
      faults: [{ text: text.slice(0, 40), message: `A filter has at most ${textMax} characters.` }],
    };
  const parts: { dimension: Dimension; is: boolean; value: string }[] = [];
  for (const token of readTokens(text)) {
    if (parts.length > filterValuesMax || faults.length > faultsMax) break;
    const dimension = dimensionOf(token);
    if (typeof dimension !== 'string') {
      faults.push({ text: token.raw, message: dimension.fault });
      continue;
    }
    for (const typed of token.values) {
      const parsed = parseValue(dimension, typed);
      if ('fault' in parsed) faults.push({ text: token.raw, message: parsed.fault });
      else parts.push({ dimension, is: token.is, value: parsed.value });
    }
  }
  if (parts.length > filterValuesMax)
    faults.unshift({
      text: '',
      message: `A query has at most ${filterValuesMax} filter values. The others are left out.`,
    });
  const kept = parts.slice(0, filterValuesMax);
  const filters = uniteFilters(kept.map(({ value, ...one }) => ({ ...one, values: [value] })));
  return { filters, faults: faults.slice(0, faultsMax) };
}

/** A bare address means itself: it is what people paste. */
function dimensionOf(token: Token): Dimension | { fault: string } {
  if (token.name === null)
    return canonicalAddress(token.values[0] ?? '') !== null
      ? 'address'
      : { fault: `Write what it is, such as app:${token.raw} or server:${token.raw}.` };
  return (
    parseDimension(token.name, dimensions) ?? {
      fault: `There is no ${token.name}. Use ${dimensions.join(', ')}.`,
    }
  );
}

/** One filter for each dimension and `is`, in the order of the dimensions, each value once. */
export function uniteFilters(filters: readonly Filter[]): Filter[] {
  return dimensions.flatMap((dimension) =>
    [true, false].flatMap((is) => {
      const values = new Set(
        filters.filter((one) => one.dimension === dimension && one.is === is).flatMap((one) => one.values),
      );
      return values.size > 0 ? [{ dimension, is, values: [...values] }] : [];
    }),
  );
}

/** The text that `parseQueryText` reads as these filters. */
export function printQueryText(filters: readonly Filter[]): string {
  return uniteFilters(filters)
    .map(({ dimension, is, values }) => {
      const name = dimension === 'application' ? 'app' : dimension;
      return `${is ? '' : '-'}${name}:${values.map(quote).join(',')}`;
    })
    .join(' ');
}

const quote = (value: string) =>
  /[\s,"\\]/.test(value) ? `"${value.replace(/["\\]/g, (one) => `\\${one}`)}"` : value;

function readTokens(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    if (/\s/.test(text[at]!)) {
      at += 1;
      continue;
    }
    const start = at;
    const head = /^(-?)(?:([\p{L}_]+):)?/u.exec(text.slice(at, at + 64))!;
    // `2001:db8::1` and `fe80:…` begin like a name: an address is taken whole.
    const word = /^-?[^\s,"]+/.exec(text.slice(at))?.[0] ?? '';
    const isAddress = canonicalAddress(word.replace(/^-/, '')) !== null;
    at += isAddress ? head[1]!.length : head[0].length;
    const read = readValues(text, at);
    at = read.end;
    const name = isAddress ? null : (head[2] ?? null);
    tokens.push({ raw: text.slice(start, at), is: head[1] === '', name, values: read.values });
  }
  return tokens;
}

/** Values from a place on, up to a space outside quotation marks. */
function readValues(text: string, from: number): { values: string[]; end: number } {
  const values: string[] = [];
  let value = '';
  let isQuoted = false;
  let at = from;
  for (; at < text.length; at += 1) {
    const one = text[at]!;
    if (isQuoted && one === '\\' && at + 1 < text.length) {
      at += 1;
      value += text[at]!;
    } else if (one === '"') isQuoted = !isQuoted;
    else if (isQuoted) value += one;
    else if (/\s/.test(one)) break;
    else if (one === ',') {
      values.push(value);
      value = '';
    } else value += one;
  }
  return { values: [...values, value], end: at };
}
