import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type NvdRecord, records } from '../testing/records/index.ts';
import { readRecord } from './read-record.ts';

const read = (record: unknown) => readRecord(record);

test('records: rejected ones are left out, unreadable ones are told apart, texts are bounded', () => {
  assert.equal(read(records.find(({ cve }) => cve.id === 'CVE-2023-5129')), 'rejected');
  const good = records[0]!;
  const change = (made: (cve: NvdRecord['cve']) => object) =>
    read({ cve: { ...good.cve, ...made(good.cve) } });
  for (const fault of [
    { id: 'CVE-1' },
    { id: 7 },
    { published: 'yesterday' },
    { descriptions: null },
    { configurations: [{ nodes: [] }] },
    { configurations: [{ nodes: [{ operator: 'XOR', negate: false, cpeMatch: [] }] }] },
    { configurations: [{ nodes: [{ operator: 'OR', children: [] }] }] },
    { configurations: [{ nodes: [{ operator: 'OR', cpeMatch: [{ vulnerable: 'yes', criteria: 'x' }] }] }] },
    { metrics: { cvssMetricV31: [{ cvssData: { baseScore: 11 } }] } },
  ])
    assert.equal(
      change(() => fault),
      null,
      JSON.stringify(fault),
    );
  for (const value of [null, undefined, 7, 'x', [], {}, { cve: null }]) assert.equal(read(value), null);
  const long = change(() => ({
    descriptions: [{ lang: 'en', value: `a\u0000\u202eb\n${'c'.repeat(100_000)}` }],
  }));
  assert.ok(typeof long === 'object' && long !== null);
  assert.ok(long.summary.startsWith('a b c') && long.summary.length <= 2_000);
  assert.equal(long.publishedAt, '2024-07-01T12:15:00.000Z');
  assert.ok(Object.isFrozen(long) === false && change(() => ({ configurations: undefined })) !== null);
});
