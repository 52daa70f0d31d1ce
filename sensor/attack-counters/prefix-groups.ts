/** Finds the group of an address: the one with the longest prefix that contains it. */
import { parseWords } from '#sensor/capture/index.ts';

export class PrefixGroups {
  /** Group by masked address, for each version and length; the longest lengths first. */
  readonly #lengths: { version: number; length: number; groups: Map<string, number> }[] = [];

  /** `groups`: canonical prefixes and addresses of each group. The group of everything else is 0, the first is 1. */
  constructor(groups: readonly (readonly string[])[]) {
    for (const [i, prefixes] of groups.entries()) for (const text of prefixes) this.#add(text, i + 1);
    this.#lengths.sort((a, b) => b.length - a.length);
  }

  /** The group of an address of four words; `lengthMax` for the group of a whole prefix. */
  of(version: number, w0: number, w1: number, w2: number, w3: number, lengthMax = 128): number {
    for (const { version: other, length, groups } of this.#lengths) {
      if (other !== version || length > lengthMax) continue;
      const group = groups.get(maskedKey(version, length, w0, w1, w2, w3));
      if (group !== undefined) return group;
    }
    return 0;
  }

  /** The group of a canonical address. */
  ofText(address: string): number {
    const { version, words } = parseWords(address);
    return this.of(version, ...words);
  }

  #add(text: string, group: number): void {
    const [address, lengthText] = text.split('/');
    const { version, words } = parseWords(address!);
    const length = lengthText === undefined ? (version === 4 ? 32 : 128) : Number(lengthText);
    let entry = this.#lengths.find((one) => one.version === version && one.length === length);
    if (!entry) {
      entry = { version, length, groups: new Map() };
      this.#lengths.push(entry);
    }
    const key = maskedKey(version, length, ...words);
    // Of two groups with the same prefix the first counts.
    if (!entry.groups.has(key)) entry.groups.set(key, group);
  }
}

function maskedKey(version: number, length: number, w0: number, w1: number, w2: number, w3: number): string {
  if (version === 4) return `${masked(w3, length)}`;
  return `${masked(w0, length)} ${masked(w1, length - 32)} ${masked(w2, length - 64)} ${masked(w3, length - 96)}`;
}

function masked(word: number, bits: number): number {
  if (bits <= 0) return 0;
  return bits >= 32 ? word | 0 : word & (-1 << (32 - bits));
}
