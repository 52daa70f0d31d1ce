/**
 * Colours of names: a name keeps its colour at every rank, in every range and on every page.
 *
 * A name's hash prefers one of seven colours of the palette. Where two names of one picture prefer the same, the one
 * with the smaller hash has it and the other takes one that is left; with more than seven names colours repeat.
 */

/** The colour of what is left of a top list: grey, which no name has. */
export const REST_COLOUR = 8;
const palette = 7;

/** A number of the palette, 1 to 7, for each name; the same for the same set of names in any order. */
export function coloursOf(names: readonly string[]): Map<string, number> {
  const inOrder = [...new Set(names)].sort((a, b) => hash(a) - hash(b) || (a < b ? -1 : 1));
  const colours = new Map<string, number>();
  const taken = new Set<number>();
  for (const name of inOrder) {
    const wanted = (hash(name) % palette) + 1;
    if (taken.has(wanted)) continue;
    taken.add(wanted);
    colours.set(name, wanted);
  }
  // Those that were too late choose among what is left, so they disturb no name that has its own colour.
  for (const name of inOrder) {
    if (colours.has(name)) continue;
    if (taken.size === palette) taken.clear();
    let colour = (hash(`${name}+`) % palette) + 1;
    while (taken.has(colour)) colour = (colour % palette) + 1;
    taken.add(colour);
    colours.set(name, colour);
  }
  return colours;
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value;
}
