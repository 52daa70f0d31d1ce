/** Completion of the box of filters: whole texts, whose last word is a dimension or one of its values. */
import { type Dimension, dimensionsOfWord, dimensionTable } from './dimensions.ts';
import { type FilterBox, printFilters, wordsOf } from './filter-text.ts';

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
