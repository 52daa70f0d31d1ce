import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  dimensions,
  parseQueryText,
  parseQueryUrl,
  parseValue,
  printQueryText,
  printQueryUrl,
  type Query,
} from './index.ts';

test('a line of filters is read with short names, negation and several values', () => {
  const { filters, faults } = parseQueryText(
    'app:GitHub,example.org  peer:198.51.100.0/24 port:443 -server:"web 1" app:example.net 2001:db8::1 -192.0.2.1',
  );
  assert.deepEqual(faults, []);
  assert.deepEqual(filters, [
    { dimension: 'server', is: false, values: ['web 1'] },
    { dimension: 'address', is: true, values: ['2001:db8::1'] },
    { dimension: 'address', is: false, values: ['192.0.2.1'] },
    { dimension: 'application', is: true, values: ['GitHub', 'example.org', 'example.net'] },
    { dimension: 'peer', is: true, values: ['198.51.100.0/24'] },
    { dimension: 'port', is: true, values: ['443'] },
  ]);
});

test('what can not be read says what to write, and the rest is read', () => {
  const { filters, faults } = parseQueryText(
    'nonsense peer:198.51.100.1/24 colour:red port:70000 app: port:22',
  );
  assert.deepEqual(filters, [{ dimension: 'port', is: true, values: ['22'] }]);
  assert.deepEqual(
    faults.map((one) => one.text),
    ['nonsense', 'peer:198.51.100.1/24', 'colour:red', 'port:70000', 'app:'],
  );
  for (const { message } of faults) assert.match(message, /Write|Use|zero/);
});

test('15 KB of filters are a hundred values and twenty faults', () => {
  const many = Array.from({ length: 1_000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
  const { filters, faults } = parseQueryText(`port:22 peer:${many.join(',')} ${many.slice(0, 50).join(' ')}`);
  assert.equal(
    filters.reduce((count, { values }) => count + values.length, 0),
    100,
  );
  assert.match(faults[0]!.message, /at most 100 filter values/);
  const wrong = parseQueryText('x '.repeat(7_000));
  assert.deepEqual([wrong.filters.length, wrong.faults.length], [0, 20]);
  const one = parseQueryText(`port:${Array.from({ length: 2_000 }, () => 'x').join(',')} app:a`);
  assert.equal(one.faults.length, 20);
});

test('values have one spelling', () => {
  const spelled = [
    ['address', '2001:DB8:0::1', '2001:db8::1'],
    ['address', '10.0.0.9%br0.7', '10.0.0.9%br0.7'],
    ['peer', '2001:db8::/32', '2001:db8::/32'],
    ['transport', '6', 'tcp'],
    ['transport', 'UDP', 'udp'],
    ['transport', '200', '200'],
    ['port', 'None', 'none'],
    ['direction', 'Inbound', 'inbound'],
    ['scope', 'UPLINK', 'uplink'],
  ] as const;
  for (const [dimension, typed, value] of spelled)
    assert.deepEqual(parseValue(dimension, typed), { value }, typed);
  for (const [dimension, typed] of [
    ['peer', '10.0.0.1%br0'],
    ['transport', '256'],
    ['port', '-1'],
    ['port', '0443'],
    ['scope', 'wan'],
    ['server', 'a\u0000b'],
    ['application', 'a'.repeat(300)],
  ] as const)
    assert.ok('fault' in parseValue(dimension, typed), typed);
});

test('printed text is read back as the same filters, with any characters in the values', () => {
  const names = ['web 1', 'a,b', 'say "hi"', 'back\\slash', 'x:y', '-minus', 'ünï', ':', '%', "'", '"', '\\'];
  const filters = [
    { dimension: 'server' as const, is: true, values: names },
    { dimension: 'address' as const, is: true, values: ['10.0.0.9%br0', '2001:db8::/32'] },
    { dimension: 'application' as const, is: false, values: names },
  ];
  assert.deepEqual(parseQueryText(printQueryText(filters)), { filters, faults: [] });
});

test('hostile text ends soon and never throws', () => {
  const pieces = [
    'app:',
    '"',
    '\\',
    ',',
    '-',
    ':',
    ' ',
    '%',
    '/',
    '::',
    '1',
    'peer',
    '\u0000',
    '😀',
    'x'.repeat(300),
  ];
  let seed = 1;
  const next = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed;
  };
  for (let i = 0; i < 2000; i += 1) {
    const text = Array.from({ length: next() % 12 }, () => pieces[next() % pieces.length]).join('');
    const { filters } = parseQueryText(text);
    assert.deepEqual(parseQueryText(printQueryText(filters)).filters, filters, text);
  }
  assert.equal(parseQueryText('a'.repeat(1_000_000)).faults.length, 1);
});

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
