/** Numbers that look random and are the same for the same seed: for tests, proofs and benches, never for secrets. */

/** Numbers from 0 up to and without 1 (mulberry32). Seeds are whole numbers of 32 bits. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
