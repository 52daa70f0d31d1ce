/** What both explorers stand on, by itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  changeText,
  type FlowEnd,
  flowGraph,
  type Ordered,
  orderOf,
  totalsOfNext,
  unclassifiedPairs,
} from './index.ts';

const end = (key: string, value: string | null = key): FlowEnd => ({ key, label: key, value });

/** Seven names that are larger than those that a test is about. */
const larger = Array.from({ length: 7 }, (_, i) => end(`large ${i}`));

test('flows: what is not among the eight largest is one, apart from a value that is named like it; colours follow one column', () => {
  const pairs = [
    ...larger.map((to) => ({ column: 0, from: end('web'), to, size: 100 })),
    { column: 0, from: end('web'), to: end('rest'), size: 5 },
    { column: 0, from: end('web'), to: end('small'), size: 1 },
    { column: 0, from: end('(none)', null), to: end('tiny'), size: 2 },
    { column: 1, from: end('rest'), to: end('peer'), size: 4 },
  ];
  const { nodes, links } = flowGraph(pairs, {
    columns: 3,
    colourColumn: 1,
    nameOf: (column) => ['Server', 'Application', 'Peer'][column]!,
    hrefOf: (column, value) => `/${column}/${value}`,
  });
  const shown = nodes.filter(({ label }) => !label.startsWith('large'));
  assert.deepEqual(
    shown.map(({ label, column, href }) => [label, column, href]),
    [
      ['web', 0, '/0/web'],
      ['rest', 1, '/1/rest'],
      ['other applications', 1, undefined],
      ['(none)', 0, undefined],
      ['peer', 2, '/2/peer'],
    ],
  );
  const colour = shown[1]!.colour;
  assert.ok(colour !== undefined && colour !== shown[2]!.colour);
  const drawn = links.filter(({ to }) => !to.includes('large'));
  assert.deepEqual(
    drawn.map(({ from, to, value }) => [from, to, value].join()),
    ['0  web,1  rest,5', '0  web,1 rest,1', '0  (none),1 rest,2', '1  rest,2  peer,4'],
  );
  assert.deepEqual([drawn[0]!.colour, drawn[3]!.colour], [colour, colour]);
});

test('flows: a picture has the sums of the table: what no application and no peer is known of is a band of its own', () => {
  const [web, db, dns] = [end('web'), end('db'), end('dns')];
  const known = [
    { column: 0, from: web, to: dns, size: 12 },
    { column: 0, from: db, to: dns, size: 31 },
  ];
  const totals = [
    { from: web, size: 719 },
    { from: db, size: 225 },
  ];
  const first = [...known, ...unclassifiedPairs(0, totals, known)];
  const toPeers = [{ column: 1, from: dns, to: end('peer'), size: 40 }];
  const pairs = [...first, ...toPeers, ...unclassifiedPairs(1, totalsOfNext(0, first), toPeers)];
  const { nodes, links } = flowGraph(pairs, {
    ...{ columns: 3, colourColumn: 1, nameOf: () => 'Name', hrefOf: () => '/' },
  });
  const labels = new Map(nodes.map(({ id, label }) => [id, label]));
  const drawn = links.map(({ from, to, value }) => `${labels.get(from)} > ${labels.get(to)} ${value}`);
  assert.deepEqual(drawn, [
    'web > dns 12',
    'db > dns 31',
    'web > Unclassified 707',
    'db > Unclassified 194',
    'dns > peer 40',
    'dns > Unclassified 3',
    'Unclassified > Unclassified 901',
  ]);
  const unclassified = nodes.filter(({ label }) => label === 'Unclassified');
  assert.deepEqual(
    unclassified.map(({ column, href }) => [column, href]),
    [
      [1, undefined],
      [2, undefined],
    ],
  );
});

test('a change is a part, from ten times on a multiple, and nothing where the value before is unknown', () => {
  assert.deepEqual(
    [
      changeText(114, 100),
      changeText(97, 100),
      changeText(1_000, 1_001),
      changeText(1_200, 100),
      changeText(5, 0),
      changeText(0, 0),
      changeText(5, null),
    ],
    ['+14 %', '−3 %', '±0 %', '× 12', 'new', 'none', null],
  );
});

test('rows are in the order of a column both ways, those of which it is not known last', () => {
  const row = (name: string, now: number | null, before: number | null): Ordered & { name: string } => ({
    ...{ name, amount: { inBytes: 0, outBytes: 0, packets: now } },
    previous: before === null ? null : { inBytes: 0, outBytes: 0, packets: before },
  });
  const rows = [row('new', 5, 0), row('unknown', null, 2), row('web-10', 4, 2), row('web-9', 9, 3)];
  const inOrder = (by: string, direction: 'asc' | 'desc') =>
    rows.toSorted(orderOf({ by, direction }, 'packets', ({ name }) => name)).map(({ name }) => name);
  assert.deepEqual(inOrder('share', 'desc'), ['web-9', 'new', 'web-10', 'unknown']);
  assert.deepEqual(inOrder('packets', 'asc'), ['web-10', 'new', 'web-9', 'unknown']);
  assert.deepEqual(inOrder('change', 'desc'), ['new', 'web-9', 'web-10', 'unknown']);
  assert.deepEqual(inOrder('change', 'asc'), ['web-10', 'web-9', 'new', 'unknown']);
  assert.deepEqual(inOrder('name', 'asc'), ['new', 'unknown', 'web-9', 'web-10']);
});
