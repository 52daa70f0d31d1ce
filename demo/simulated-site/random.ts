/** Numbers that look random and are the same for the same seed, in any order of asking. */

/** From 0 to 1, 1 excluded; the same for the same seed and parts. */
export type Draw = () => number;

/** A sequence of draws that belongs to these whole numbers, such as a seed, a hypervisor and a minute. */
export function createDraw(...parts: readonly number[]): Draw {
  let state = 0x9e3779b9;
  for (const part of parts) {
    // Whole numbers over 32 bits, such as minutes, count with both halves.
    state = mix(state ^ mix(part >>> 0)) ^ mix(Math.floor(part / 0x1_0000_0000) + 0x85ebca6b);
  }
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    return mix(state) / 0x1_0000_0000;
  };
}

export function pick<T>(draw: Draw, from: readonly T[]): T {
  return from[Math.floor(draw() * from.length)]!;
}

/** A whole number from `least` to `most`. */
export function between(draw: Draw, least: number, most: number): number {
  return least + Math.floor(draw() * (most - least + 1));
}

/** An index below `count`; the first ones often, the last ones rarely. */
export function pickOfTail(draw: Draw, count: number): number {
  return Math.min(count - 1, Math.floor(count ** draw()) - 1);
}

function mix(value: number): number {
  let mixed = value >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x7feb352d);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
