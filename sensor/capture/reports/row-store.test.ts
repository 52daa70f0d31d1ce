import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PageFile, RowStore } from './row-store.ts';

const rowWords = 20;
const count = 200_000;
/** Maximum distance between the rows of flows that began one after the other; flows end in another order. */
const apart = 30_000;

/** An in-memory page file that counts its reads. */
class CountingFile implements PageFile {
  reads = 0;
  readonly pages: Uint8Array[] = [];

  write(page: Uint8Array): number {
    return this.pages.push(page.slice()) - 1;
  }

  read(number: number, into: Uint8Array): void {
    this.reads += 1;
    into.set(this.pages[number]!);
  }
}

test('NET-8.6: reading rows in the order of their start needs few reads of the file, though flows ended in another order', () => {
  const file = new CountingFile();
  const rows = new RowStore(rowWords, 0, file);
  for (let row = 0; row < count; row += 1) {
    rows.append();
    rows.words.fill(row, rows.at, rows.at + rowWords);
  }
  for (let row = 0; row < count - apart; row += 1) {
    const wanted = row + ((row * 7919) % apart);
    rows.seek(wanted);
    assert.equal(rows.words[rows.at], wanted);
  }
  assert.ok(file.reads <= file.pages.length, `${file.reads} reads of ${file.pages.length} pages`);
});
