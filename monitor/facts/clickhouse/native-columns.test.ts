import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEngine } from './engine-store.ts';
import { bytes, type Column, numbers, Rows, texts } from './native-columns.ts';
import { plain } from './statement.ts';
import { createChdbEngine } from './testing/chdb-engine.ts';

interface Sample {
  small: number;
  whole: number;
  signed: number;
  large: number;
  at: number;
  id: string;
  text: string;
  raw: Uint8Array;
}

const columns: Column<Sample>[] = [
  numbers('UInt8', 'small', (row) => row.small),
  numbers('UInt32', 'whole', (row) => row.whole),
  numbers('Int32', 'signed', (row) => row.signed),
  numbers('UInt64', 'large', (row) => row.large),
  numbers('DateTime', 'at', (row) => row.at),
  texts('id', (row) => row.id),
  texts('text', (row) => row.text),
  bytes('raw', (row) => row.raw),
];

const least: Sample = {
  ...{ small: 0, whole: 0, signed: -(2 ** 31), large: 0, at: 0 },
  ...{ id: '00000000-0000-0000-0000-000000000000', text: '', raw: new Uint8Array() },
};
const most: Sample = {
  ...{ small: 255, whole: 2 ** 32 - 1, signed: 2 ** 31 - 1, large: Number.MAX_SAFE_INTEGER, at: 2 ** 32 - 1 },
  // A length of one byte ends at 127, of two at 16,383.
  ...{ id: 'ffffffff-0123-4567-89ab-fedcba987654', text: 'ü'.repeat(9000) },
  raw: Uint8Array.from({ length: 256 }, (_, i) => i),
};
const texted = (length: number): Sample => ({ ...least, text: 'x'.repeat(length), large: 2 ** 32 + length });

test('rows of every type come back from ClickHouse as they were, in columns of its own types', async () => {
  await using engine = await createChdbEngine();
  const { run, insert, rows } = createEngine(engine.client);
  await run(
    plain(`create table samples (small UInt8, whole UInt32, signed Int32, large UInt64, at DateTime('UTC'), id UUID,
      text LowCardinality(String), raw String) engine = MergeTree order by large`),
  );
  const samples = [least, most, ...[1, 31, 32, 33, 127, 128, 129, 16_383, 16_384].map(texted)];
  const sent = new Rows(columns);
  // In pieces, as minutes are added.
  sent.add(samples.slice(0, 2));
  sent.add([]);
  sent.add(samples.slice(2));
  assert.equal(sent.count, samples.length);
  await insert({ table: 'samples', columns: sent.names }, sent.encode(), 'a1');
  const found = await rows<Record<string, unknown>>(
    plain(`select small, whole, signed, toString(large) as large, toUnixTimestamp(at) as at, toString(id) as id, text,
      hex(raw) as raw from samples`),
  );
  const byLarge = (a: Sample, b: Sample) => a.large - b.large;
  assert.deepEqual(
    found,
    samples.toSorted(byLarge).map((sample) => ({
      ...sample,
      large: String(sample.large),
      raw: Buffer.from(sample.raw).toString('hex').toUpperCase(),
    })),
  );
});

test('rows of a block keep nothing of the blocks before, whose memory is used again', () => {
  const encode = (samples: Sample[]) => {
    const rows = new Rows(columns);
    rows.add(samples);
    return rows.encode();
  };
  const first = encode([least, texted(200)]);
  const copy = Buffer.from(first);
  encode([most, most, most]);
  assert.deepEqual(first, copy, 'a block that was made does not change');
  assert.deepEqual(encode([least, texted(200)]), copy);
});

test('a number that its column can not hold is refused, not cut', () => {
  for (const wrong of [
    { small: 256 },
    { small: -1 },
    { whole: 2 ** 32 },
    { signed: 2 ** 31 },
    { at: -1 },
    { large: -1 },
  ])
    assert.throws(() => new Rows(columns).add([{ ...least, ...wrong }]), RangeError, JSON.stringify(wrong));
});

test('a block is made once', () => {
  const rows = new Rows(columns);
  rows.encode();
  assert.throws(() => rows.encode(), /encoded before/);
  assert.throws(() => rows.add([least]), /encoded before/);
});
