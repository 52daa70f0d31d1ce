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

test("the database's own score counts before that of another, each by the newest version of CVSS", () => {
  const severityOf = (metrics: unknown) => {
    const record = read({ cve: { ...records[0]!.cve, metrics } });
    return record && record !== 'rejected'
      ? record.severity && [record.severity.version, record.severity.score]
      : record;
  };
  const scored = (type: string, baseScore: number) => ({ type, cvssData: { baseScore } });
  const [v31, v40, v2] = [[scored('Primary', 7.5)], [scored('Secondary', 9.3)], [scored('Primary', 5)]];
  assert.deepEqual(severityOf({ cvssMetricV40: v40, cvssMetricV31: v31, cvssMetricV2: v2 }), ['3.1', 7.5]);
  assert.deepEqual(severityOf({ cvssMetricV40: v40 }), ['4.0', 9.3]);
  assert.deepEqual(severityOf({ cvssMetricV31: [...v40, ...v31] }), ['3.1', 7.5]);
  assert.deepEqual(severityOf({ cvssMetricV40: [], cvssMetricV30: v40, cvssMetricV2: v2 }), ['2.0', 5]);
  assert.equal(severityOf({}), null);
});

test('a field that is null is absent: the rest of the record is used', () => {
  const { cve } = records.find((one) => one.cve.id === 'CVE-2024-6387')!;
  const whole = read({ cve });
  const without = (change: object) => {
    const record = read({ cve: { ...cve, ...change } });
    assert.ok(record && record !== 'rejected', JSON.stringify(change));
    return record;
  };
  assert.equal(without({ metrics: null }).severity, null);
  assert.deepEqual(without({ metrics: { cvssMetricV40: null, ...cve.metrics } }), whole);
  assert.deepEqual(without({ configurations: null }).configurations, []);
  assert.deepEqual(without({ cisaExploitAdd: null, cveTags: null }), whole);
  assert.equal(without({ vulnStatus: null }).status, 'Unknown');
  const nulls = { negate: null, versionEndIncluding: null };
  const configurations = cve.configurations!.map(({ nodes }) => ({
    ...{ operator: null, negate: null },
    nodes: nodes.map((node) => ({
      ...node,
      negate: null,
      cpeMatch: node.cpeMatch.map((one) => ({ ...nulls, ...one })),
    })),
  }));
  assert.deepEqual(without({ configurations }), whole);
  assert.equal(read({ cve: { ...cve, id: null } }), null);
});
