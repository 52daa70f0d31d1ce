import { Protocol } from '../decode/packet.ts';
import type { NameEvidence } from './minute-report.ts';

/**
 * Append-only rows of fixed width: in memory pages first, in a file when there are many.
 *
 * A long capture has more rows than fit into memory. `append` and `seek` point `words`, `sums` and `at` at a row, valid
 * until the next call of either.
 */

/** Storage for pages of `pageBytes` each. */
export interface PageFile {
  /** Stores a page and returns its number. */
  write(page: Uint8Array): number;
  read(number: number, into: Uint8Array): void;
}

export const pageBytes = 65_536;
const pageWords = pageBytes / 4;
/** Pages of the file that are cached. */
const cachedPages = 64;

interface Page {
  words: Int32Array;
  sums: Float64Array;
}

export class RowStore {
  words: Int32Array;
  sums: Float64Array;
  at = 0;
  count = 0;

  readonly #rowWords: number;
  readonly #rowsPerPage: number;
  /** The rows in the current page: the first, and the one after the last. */
  #from = 0;
  #until = 0;
  readonly #residentMax: number;
  readonly #file: PageFile | null;
  readonly #resident: Page[] = [];
  /** Numbers of the stored pages after the resident ones. */
  readonly #stored: number[] = [];
  readonly #cache: (Page & { number: number })[] = [];
  #open: Page = createPage();
  #openRows = 0;

  /** `rowWords` is even, so that sums are at even words. Without a file everything stays in memory. */
  constructor(rowWords: number, residentBytes: number, file: PageFile | null, rowsPerPage = 0) {
    this.#rowWords = rowWords;
    this.#rowsPerPage = rowsPerPage || Math.floor(pageWords / rowWords);
    this.#residentMax = file === null ? Number.POSITIVE_INFINITY : Math.floor(residentBytes / pageBytes);
    this.#file = file;
    this.words = this.#open.words;
    this.sums = this.#open.sums;
  }

  /** A read-only store over rows that are already adjacent in memory. */
  static of(rowWords: number, { words, sums, count }: Page & { count: number }): RowStore {
    const rows = new RowStore(rowWords, 0, null, Math.max(1, count));
    rows.#open = { words, sums };
    rows.#openRows = rows.count = count;
    return rows;
  }

  /** Makes room for a row. Its words have arbitrary values; the caller sets each of them. */
  append(): void {
    if (this.#openRows === this.#rowsPerPage) this.#closePage();
    this.words = this.#open.words;
    this.sums = this.#open.sums;
    this.#until = 0;
    this.at = this.#openRows * this.#rowWords;
    this.#openRows += 1;
    this.count += 1;
  }

  seek(row: number): void {
    if (row < this.#from || row >= this.#until) this.#turnTo(row);
    this.at = (row - this.#from) * this.#rowWords;
  }

  #turnTo(row: number): void {
    const number = Math.floor(row / this.#rowsPerPage);
    const page = this.#page(number);
    this.words = page.words;
    this.sums = page.sums;
    this.#from = number * this.#rowsPerPage;
    this.#until = this.#from + this.#rowsPerPage;
  }

  #page(number: number): Page {
    if (number < this.#resident.length) return this.#resident[number]!;
    const later = number - this.#resident.length;
    if (later >= this.#stored.length) return this.#open;
    const stored = this.#stored[later]!;
    const slot = number % cachedPages;
    let cached = this.#cache[slot];
    if (cached?.number === number) return cached;
    cached ??= { ...createPage(), number };
    this.#file!.read(stored, new Uint8Array(cached.words.buffer));
    cached.number = number;
    this.#cache[slot] = cached;
    return cached;
  }

  #closePage(): void {
    if (this.#resident.length < this.#residentMax) {
      this.#resident.push(this.#open);
      this.#open = createPage();
    } else this.#stored.push(this.#file!.write(new Uint8Array(this.#open.words.buffer)));
    this.#openRows = 0;
  }
}

function createPage(): Page {
  const buffer = new ArrayBuffer(pageBytes);
  return { words: new Int32Array(buffer), sums: new Float64Array(buffer) };
}

// Texts for the protocols and the evidence of rows.

const labels = new Map<number, string>([
  [Protocol.gre, 'GRE'],
  [Protocol.esp, 'IPsec ESP'],
  [Protocol.ipip, 'IP-in-IP'],
  [Protocol.ipv6, 'IPv6-in-IP'],
  [Protocol.igmp, 'IGMP'],
  [Protocol.ospf, 'OSPF'],
  [Protocol.sctp, 'SCTP'],
]);

/** Label of an IP protocol (NET-2.2.4), or null. AH has one over IPv4 only. */
export function protocolLabel(protocol: number, version: number): string | null {
  if (protocol === Protocol.ah) return version === 4 ? 'IPsec AH' : null;
  return labels.get(protocol) ?? null;
}

/** Names of the kinds of evidence, by their number in a flow record. */
export const evidenceText: readonly NameEvidence[] = [
  'none',
  'dns',
  'tls_outer',
  'http_connect',
  'http_host',
  'tls_sni',
];
