import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PageFile, RowStore } from './row-store.ts';
import { keyAt, SummingTable } from './summing-table.ts';

function memoryFile(): PageFile & { pages: Uint8Array[] } {
  const pages: Uint8Array[] = [];
  return {
    pages,
    write: (page) => pages.push(page.slice()) - 1,
    read: (number, into) => into.set(pages[number]!),
  };
}

test('rows moved out of memory are read back unchanged, in any order', () => {
  const file = memoryFile();
  const rows = new RowStore(20, 65_536 * 2, file);
  for (let row = 0; row < 10_000; row += 1) {
    rows.append();
    rows.words[rows.at] = row;
    rows.sums[(rows.at >> 1) + 1] = row * 1e10;
  }
  assert.equal(rows.count, 10_000);
  assert.ok(file.pages.length > 5);
  for (let i = 0; i < 30_000; i += 1) {
    const row = i < 10_000 ? i : (i * 7919) % 10_000;
    rows.seek(row);
    assert.deepEqual([rows.words[rows.at], rows.sums[(rows.at >> 1) + 1]], [row, row * 1e10]);
  }
});

test('keys that exceed memory are summed like the others, each once', () => {
  const options = { keyWords: 3, sumCount: 2, recordsMax: 64, seed: 7 };
  for (const file of [memoryFile(), null]) {
    const table = new SummingTable({ ...options, file });
    const wanted = new Map<number, number>();
    for (let i = 0; i < 20_000; i += 1) {
      const key = (i * i) % 1009;
      table.key.set([key, 5, -key]);
      const at = table.locate(true);
      table.sums[at]! += i;
      table.sums[at + 1]! += 1;
      wanted.set(key, (wanted.get(key) ?? 0) + i);
    }
    const rows = table.finish(0);
    const got = new Map<number, number>();
    let count = 0;
    for (let row = 0; row < rows.count; row += 1) {
      rows.seek(row);
      const key = rows.words[rows.at + keyAt(2)]!;
      assert.ok(!got.has(key), `key ${key} appears twice`);
      got.set(key, rows.sums[rows.at >> 1]!);
      count += rows.sums[(rows.at >> 1) + 1]!;
    }
    assert.deepEqual([count, got.size], [20_000, wanted.size]);
    for (const [key, sum] of wanted) assert.equal(got.get(key), sum);
  }
});

test('a key that is not in memory is not added unless it may be', () => {
  const table = new SummingTable({ keyWords: 1, sumCount: 1, recordsMax: 64, seed: 7, file: null });
  table.key[0] = 1;
  assert.equal(table.locate(false), -1);
  assert.equal(table.locate(true), 0);
  assert.equal(table.isNew, true);
  assert.equal(table.locate(false), 0);
  assert.equal(table.isNew, false);
});
