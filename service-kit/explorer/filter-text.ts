/**
 * Filters as one line of text, the same in every explorer: `app:github.com peer:198.51.100.0/24,203.0.113.7 -server:"web 1"`.
 *
 * A minus sign means "is not". Values of a dimension are separated by commas or given one by one; one with a space, a comma
 * or a quotation mark stands in quotation marks, in which a backslash takes the next character as it is. A bare address is
 * that address.
 */
import { canonicalAddress, parsePrefix } from '#common/ip/index.ts';
import { type Dimension, dimensions, dimensionsOfWord, dimensionTable, parseValue } from './dimensions.ts';

/** Rows that any of these values matches, or with `is: false` rows that none does. */
export interface Filter {
  dimension: Dimension;
  is: boolean;
  /** At least one, each in the one spelling of the dimension. */
  values: readonly string[];
}

/** What can be filtered by in one place. */
export interface FilterBox {
  filters: readonly Dimension[];
  /** Addresses may name a segment. */
  hasSegments: boolean;
}

/** A part of the text that could not be read. */
export interface TextFault {
  /** As it was typed. */
  text: string;
  message: string;
}

/** Values of all filters together: each has links on the page, which carry all of them. */
export const filterValuesMax = 100;
export const filterTextMax = 20_000;
/** Faults that are told; who has more has pasted something else. */
const faultsMax = 20;

interface Token {
  raw: string;
  is: boolean;
  name: string | null;
  values: string[];
}

/** Reads what it can; the rest is in `faults`, each with what to write instead, up to a bound of each. */
export function parseFilters(text: string, box: FilterBox) {
  const faults: TextFault[] = [];
  if (text.length > filterTextMax)
    return {
      filters: [],
      faults: [{ text: text.slice(0, 40), message: `A filter has at most ${filterTextMax} characters.` }],
    };
  const parts: Filter[] = [];
  for (const token of readTokens(text)) {
    if (parts.length > filterValuesMax || faults.length > faultsMax) break;
    const named = token.name === null ? bare(token) : dimensionsOfWord(token.name);
    const fault = Array.isArray(named) ? whyNotHere(token.name, named, box) : named.fault;
    if (fault !== null || !Array.isArray(named)) {
      faults.push({ text: token.raw, message: fault! });
      continue;
    }
    for (const typed of token.values) {
      const parsed = readValue(named, typed, box);
      if ('fault' in parsed) faults.push({ text: token.raw, message: parsed.fault });
      else parts.push({ dimension: parsed.dimension, is: token.is, values: [parsed.value] });
    }
  }
  if (parts.length > filterValuesMax)
    faults.unshift({
      text: '',
      message: `A query has at most ${filterValuesMax} filter values. The others are left out.`,
    });
  return { filters: uniteFilters(parts.slice(0, filterValuesMax)), faults: faults.slice(0, faultsMax) };
}

/** A bare address or network means itself: it is what people paste. */
const bare = ({ raw, values: [value = ''] }: Token): Dimension[] | { fault: string } =>
  canonicalAddress(value) !== null || (value.includes('/') && parsePrefix(value) !== null)
    ? ['address']
    : { fault: `Write what it is, such as app:${raw} or server:${raw}.` };

/** The words that are read here. */
const wordsOf = ({ filters }: FilterBox): string[] => [
  ...new Set(filters.map((one) => dimensionTable[one].word)),
];

/** Null: it is. `named` are the dimensions of the word. */
function whyNotHere(name: string | null, named: readonly Dimension[], box: FilterBox): string | null {
  if (named.some((one) => box.filters.includes(one))) return null;
  const use = `Use ${wordsOf(box).join(', ')}.`;
  if (named.length === 0) return `There is no filter ${name}. ${use}`;
  return `${name ?? 'address'}: is not a filter of this page. ${use}`;
}

/** A value of the first of these dimensions that has it. */
function readValue(
  named: readonly Dimension[],
  typed: string,
  box: FilterBox,
): { dimension: Dimension; value: string } | { fault: string } {
  const parsed = named
    .filter((one) => dimensionTable[one].filteredBy === undefined)
    .map((dimension) => ({
      dimension,
      isHere: box.filters.includes(dimension),
      ...parseValue(dimension, typed),
    }));
  const here = parsed.filter((one) => one.isHere);
  const found = here.find((one) => 'value' in one) ?? parsed.find((one) => 'value' in one) ?? here[0]!;
  const { word } = dimensionTable[found.dimension];
  if ('fault' in found) {
    const values = here.flatMap(({ dimension }) => dimensionTable[dimension].values ?? []);
    return here.length > 1 && typed.trim() !== ''
      ? { fault: `${typed} is no ${word}. Use ${values.join(', ')}.` }
      : { fault: found.fault };
  }
  if (!found.isHere) {
    const values = dimensionTable[here[0]!.dimension].values ?? [];
    return { fault: `${word}:${found.value} is not a filter of this page. Use ${values.join(', ')}.` };
  }
  if (found.dimension === 'address' && found.value.includes('%') && !box.hasSegments)
    return { fault: 'Segments are not a filter of this page: leave out %.' };
  return found;
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

/** The text that `parseFilters` reads as these filters. */
export function printFilters(filters: readonly Filter[]): string {
  return uniteFilters(filters)
    .map(
      ({ dimension, is, values }) =>
        `${is ? '' : '-'}${dimensionTable[dimension].word}:${values.map(quote).join(',')}`,
    )
    .join(' ');
}

/** Whether a thing passes the filters of one dimension; `matches` compares it with a value. */
export function passes(
  filters: readonly Filter[],
  dimension: Dimension,
  matches: (value: string) => boolean,
): boolean {
  return filters
    .filter((one) => one.dimension === dimension)
    .every(({ is, values }) => values.some(matches) === is);
}

/** Which bytes the filters let count: those to the server, those from it. */
export const sidesOf = (filters: readonly Filter[]): Sides => ({
  in: passes(filters, 'side', (value) => value === 'in'),
  out: passes(filters, 'side', (value) => value === 'out'),
});

export interface Sides {
  in: boolean;
  out: boolean;
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
    const isAddress = canonicalAddress(word.replace(/^-/, '').replace(/\/.*/, '')) !== null;
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

// Completion of the box of filters: whole texts, whose last word is a dimension or one of its values.

/** Values that are offered at a time. */
export const completionsMax = 10;

/** Values of a dimension that hold a text, at most `completionsMax`, the likeliest first; asked of what has no fixed values. */
export type ListValues = (dimension: Dimension, typed: string) => Promise<readonly string[]>;

export async function completeFilters(typed: string, box: FilterBox, list: ListValues): Promise<string[]> {
  const last = splitTyped(typed);
  if (last === null) return [];
  const { head, minus, name, word } = last;
  if (name === null)
    return wordsOf(box)
      .filter((one) => one.startsWith(word.toLowerCase()))
      .map((one) => `${head}${minus}${one}:`);
  const text = word.replaceAll('"', '').toLowerCase();
  const of = dimensionsOfWord(name).filter(
    (one) => box.filters.includes(one) && !dimensionTable[one].filteredBy,
  );
  const found = await Promise.all(
    of.map(async (dimension) => {
      const { values } = dimensionTable[dimension];
      const fitting = values ? values.filter((one) => one.includes(text)) : await list(dimension, text);
      return fitting.map(
        (value) => `${head}${printFilters([{ dimension, is: minus === '', values: [value] }])}`,
      );
    }),
  );
  return found.flat().slice(0, completionsMax);
}

interface TypedFilter {
  /** What stands before the last word, kept as it is. */
  head: string;
  /** `-` where the last word is negated. */
  minus: string;
  /** Null until a colon is typed. */
  name: string | null;
  /** What was typed of the value, or of the name; quotes are still in it. */
  word: string;
}

/** The last word, which is completed; null where it has no form of a filter. */
export function splitTyped(typed: string): TypedFilter | null {
  const last = /(?:^|\s)(-?)(?:(\p{L}+):)?((?:"[^"]*"?|[^\s"])*)$/u.exec(typed);
  if (!last) return null;
  const [, minus = '', name, word = ''] = last;
  const length = minus.length + (name === undefined ? 0 : name.length + 1) + word.length;
  return { head: typed.slice(0, typed.length - length), minus, name: name ?? null, word };
}
