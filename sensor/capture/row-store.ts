/**
 * Rows of fixed width that are only ever added: in pages of memory first, in a file once there are many.
 *
 * A long capture has more rows than memory should hold. `append` and `seek` leave a row at `at` in `words` and `sums`,
 * valid until the next call of either.
 */

/** Pages outside of memory; each has `pageBytes`. */
export interface PageFile {
  /** Stores a page and answers its number. */
  write(page: Uint8Array): number;
  read(number: number, into: Uint8Array): void;
}

export const pageBytes = 65_536;
const pageWords = pageBytes / 4;
/** Pages of the file that are kept for the next look. */
const cachedPages = 16;

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
  readonly #residentMax: number;
  readonly #file: PageFile | null;
  readonly #resident: Page[] = [];
  /** Numbers of the pages behind the resident ones. */
  readonly #stored: number[] = [];
  readonly #cache: (Page & { number: number })[] = [];
  #open: Page = createPage();
  #openRows = 0;

  /** `rowWords` is even, so that sums may lie at even words. Without a file everything stays in memory. */
  constructor(rowWords: number, residentBytes: number, file: PageFile | null) {
    this.#rowWords = rowWords;
    this.#rowsPerPage = Math.floor(pageWords / rowWords);
    this.#residentMax = file === null ? Number.POSITIVE_INFINITY : Math.floor(residentBytes / pageBytes);
    this.#file = file;
    this.words = this.#open.words;
    this.sums = this.#open.sums;
  }

  /** Makes room for a row, with whatever stood there before; every word of it is for the caller to fill. */
  append(): void {
    if (this.#openRows === this.#rowsPerPage) this.#closePage();
    this.words = this.#open.words;
    this.sums = this.#open.sums;
    this.at = this.#openRows * this.#rowWords;
    this.#openRows += 1;
    this.count += 1;
  }

  seek(row: number): void {
    const number = Math.floor(row / this.#rowsPerPage);
    const page = this.#page(number);
    this.words = page.words;
    this.sums = page.sums;
    this.at = (row - number * this.#rowsPerPage) * this.#rowWords;
  }

  #page(number: number): Page {
    const resident = this.#resident[number];
    if (resident) return resident;
    const stored = this.#stored[number - this.#resident.length];
    if (stored === undefined) return this.#open;
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
