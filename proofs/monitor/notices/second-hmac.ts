/**
 * A second HMAC-SHA256, written from FIPS 180-4 and RFC 2104, that shares nothing with the tested code, neither Node's
 * crypto nor OpenSSL. Used as reference, not for speed.
 */

const primes = [...Array(312).keys()].slice(2).filter((n) => {
  for (let divisor = 2; divisor * divisor <= n; divisor += 1) if (n % divisor === 0) return false;
  return true;
});
/** The first 32 bits of the fraction of a root. */
const fraction = (root: number) => Math.floor((root - Math.floor(root)) * 2 ** 32);
const initial = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
const rounds = primes.slice(0, 64).map((prime) => fraction(Math.cbrt(prime)));
const turn = (word: number, by: number) => (word >>> by) | (word << (32 - by));

export function secondSha256(message: Uint8Array): Uint8Array {
  const blocks = Math.ceil((message.length + 9) / 64);
  const padded = new Uint8Array(blocks * 64);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(message.length / 2 ** 29));
  view.setUint32(padded.length - 4, (message.length * 8) % 2 ** 32);
  const state = [...initial];
  const words: number[] = [];
  for (let block = 0; block < blocks; block += 1) {
    for (let i = 0; i < 64; i += 1) words[i] = i < 16 ? view.getUint32(block * 64 + i * 4) : extend(words, i);
    compress(state, words);
  }
  const digest = new DataView(new ArrayBuffer(32));
  for (const [i, word] of state.entries()) digest.setUint32(i * 4, word >>> 0);
  return new Uint8Array(digest.buffer);
}

function extend(words: readonly number[], i: number): number {
  const two = words[i - 2]!;
  const fifteen = words[i - 15]!;
  const low = turn(fifteen, 7) ^ turn(fifteen, 18) ^ (fifteen >>> 3);
  const high = turn(two, 17) ^ turn(two, 19) ^ (two >>> 10);
  return (words[i - 16]! + low + words[i - 7]! + high) | 0;
}

function compress(state: number[], words: readonly number[]): void {
  let [a, b, c, d, e, f, g, h] = state as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i += 1) {
    const choice = (e & f) ^ (~e & g);
    const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + choice + rounds[i]! + words[i]!) | 0;
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + majority) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) state[i] = (state[i]! + word) | 0;
}

/** Hexadecimal. */
export function secondHmac(key: Uint8Array, message: Uint8Array): string {
  const block = new Uint8Array(64);
  block.set(key.length > 64 ? secondSha256(key) : key);
  const masked = (mask: number) => block.map((byte) => byte ^ mask);
  const inner = secondSha256(Buffer.concat([masked(0x36), message]));
  return Buffer.from(secondSha256(Buffer.concat([masked(0x5c), inner]))).toString('hex');
}
