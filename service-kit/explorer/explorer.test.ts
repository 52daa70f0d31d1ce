/** What both explorers stand on, by itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changeText, type FlowEnd, flowGraph, splitTyped } from './index.ts';

const end = (key: string, value: string | null = key): FlowEnd => ({ key, label: key, value });

test('flows: what is not among the largest is one, apart from a value that is named like it; colours follow one column', () => {
  const pairs = [
    { column: 0, from: end('web'), to: end('rest'), size: 5 },
    { column: 0, from: end('web'), to: end('small'), size: 1 },
    { column: 0, from: end('(none)', null), to: end('tiny'), size: 2 },
    { column: 1, from: end('rest'), to: end('peer'), size: 4 },
  ];
  const { nodes, links } = flowGraph(pairs, {
    top: [new Set(['web', '(none)']), new Set(['rest']), new Set(['peer'])].map(
      (keys) => new Map([...keys].map((key) => [key, 1])),
    ),
    colourColumn: 1,
    nameOf: (column) => ['Server', 'Application', 'Peer'][column]!,
    hrefOf: (column, value) => `/${column}/${value}`,
  });
  assert.deepEqual(
    nodes.map(({ label, column, href }) => [label, column, href]),
    [
      ['web', 0, '/0/web'],
      ['rest', 1, '/1/rest'],
      ['other applications', 1, undefined],
      ['(none)', 0, undefined],
      ['peer', 2, '/2/peer'],
    ],
  );
  const colour = nodes[1]!.colour;
  assert.ok(colour !== undefined && colour !== nodes[2]!.colour);
  assert.deepEqual(
    links.map(({ from, to, value }) => [from, to, value].join()),
    ['0  web,1  rest,5', '0  web,1 rest,1', '0  (none),1 rest,2', '1  rest,2  peer,4'],
  );
  assert.deepEqual([links[0]!.colour, links[3]!.colour], [colour, colour]);
});

test('the last word of a filter box is taken apart, open quotes included', () => {
  assert.deepEqual(splitTyped('port:443 -server:"web 1'), {
    ...{ head: 'port:443 ', minus: '-', name: 'server', word: '"web 1' },
  });
  assert.deepEqual(splitTyped('ap'), { head: '', minus: '', name: null, word: 'ap' });
  assert.deepEqual(splitTyped('app:'), { head: '', minus: '', name: 'app', word: '' });
  assert.deepEqual(splitTyped('app:a '), { head: 'app:a ', minus: '', name: null, word: '' });
});

test('a change is a part, from ten times on a multiple, and nothing where the value before is unknown', () => {
  const said = (now: number, before: number | null) => changeText(now, before, (count) => `${count} times`);
  assert.deepEqual(
    [
      said(114, 100),
      said(97, 100),
      said(1_000, 1_001),
      said(1_200, 100),
      said(5, 0),
      said(0, 0),
      said(5, null),
    ],
    ['+14 %', '−3 %', '±0 %', '12 times', 'new', 'none', null],
  );
});
