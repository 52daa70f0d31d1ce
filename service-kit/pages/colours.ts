/**
 * Colours of names: a name keeps its colour at every rank, in every range and on every page.
 *
 * A name's hash prefers one of twelve colours of the palette. Where two names of one picture prefer the same, the one
 * with the smaller hash has it and the other takes one that is left; with more than twelve names colours repeat.
 */

/** The colour of what is left of a top list: grey, which no name has. */
export const REST_COLOUR = 8;
/** Every number of the palette but the grey. */
const hues = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13];

/** Of in and out, which charts draw in the same two colours everywhere. */
export const SIDE_COLOURS: readonly number[] = [1, 2];

/**
 * A number of the palette for each name; the same for the same set of names in any order. `reserved`: numbers that no name
 * has as long as others are left.
 */
export function coloursOf(names: readonly string[], reserved: readonly number[] = []): Map<string, number> {
  const inOrder = [...new Set(names)].sort((a, b) => hash(a) - hash(b) || (a < b ? -1 : 1));
  const colours = new Map<string, number>();
  const taken = new Set<number>(reserved);
  for (const name of inOrder) {
    const wanted = hues[hash(name) % hues.length]!;
    if (taken.has(wanted)) continue;
    taken.add(wanted);
    colours.set(name, wanted);
  }
  // Those that were too late choose among what is left, so they disturb no name that has its own colour.
  for (const name of inOrder) {
    if (colours.has(name)) continue;
    if (taken.size === hues.length) taken.clear();
    let place = hash(`${name}+`) % hues.length;
    while (taken.has(hues[place]!)) place = (place + 1) % hues.length;
    const colour = hues[place]!;
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

/** The meaning of a colour. Colour is never the only sign: every element with a tone also shows a word or a shape. */
export type Tone = 'neutral' | 'info' | 'good' | 'warn' | 'bad';

const marks: Record<Tone, string> = { neutral: '○', info: '●', good: '●', warn: '▲', bad: '■' };

/** The shape that goes with a tone, so that it is seen without colour. */
export function toneMark(tone: Tone): string {
  return marks[tone];
}
