import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dimensions, parseQueryUrl, printQueryUrl, type Query } from './index.ts';

test('a query and its URL say the same', () => {
  const queries: Query[] = [
    { ...parseQueryUrl(7, {}).query },
    {
      siteId: 7,
      range: { from: 1_795_000_020, to: 1_795_003_620 },
      filters: [{ dimension: 'sensor', is: false, values: ['node 1'] }],
      by: ['server', 'peer'],
      step: null,
      measure: 'packets',
      order: 'in',
      top: 25,
      compare: 'previous',
    },
    { ...parseQueryUrl(7, { range: '90m', by: 'app', step: '600' }).query },
  ];
  for (const query of queries) {
    const values = Object.fromEntries(new URLSearchParams(printQueryUrl(query)));
    assert.deepEqual(parseQueryUrl(7, values), { query, faults: [] });
  }
  assert.deepEqual(printQueryUrl(queries[0]!), {});
  assert.equal(printQueryUrl(queries[2]!).range, '90m');
});

test('a URL with faults names each and keeps the defaults', () => {
  const { query, faults } = parseQueryUrl(7, {
    ...{ range: '400d', by: 'server,colour', step: '7', measure: 'bits', top: '0', compare: 'next', q: 'x' },
  });
  assert.deepEqual(query, parseQueryUrl(7, {}).query);
  assert.deepEqual(faults.map((one) => one.text).sort(), [
    'by=server,colour',
    'compare=next',
    'measure=bits',
    'range=400d',
    'step=7',
    'top=0',
    'x',
  ]);
  for (const bad of [
    { from: '2026-11-21T10:00Z' },
    { from: '2026-11-21T10:00Z', to: '2026-11-21T10:00Z' },
    { from: 'yesterday', to: 'now' },
    { range: 'custom' },
    { by: dimensions.slice(0, 3).join(',') },
    { by: 'server,vm' },
    { range: '0m' },
    { range: '-1h' },
  ])
    assert.equal(parseQueryUrl(7, bad).faults.length, 1, JSON.stringify(bad));
});

test('times are taken as Grafana and browsers send them, on whole minutes', () => {
  const expected = { from: 1_795_255_200, to: 1_795_258_860 };
  for (const [from, to] of [
    ['2026-11-21T10:00Z', '2026-11-21T11:01'],
    ['1795255200000', '1795258801000'],
    ['2026-11-21 10:00:59.5', '2026-11-21T11:00:00.001Z'],
  ])
    assert.deepEqual(parseQueryUrl(7, { from, to }).query.range, expected, from);
});
