/** The text of the filter box while it is typed. */
export interface TypedFilter {
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
