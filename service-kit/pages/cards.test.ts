/** Every list of both servers says how its rows stand on a phone. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { html, table } from './index.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The end of what opens before `from`, past strings and templates. */
function closing(text: string, from: number): number {
  let depth = 1;
  let quote = '';
  for (let at = from; at < text.length; at += 1) {
    const character = text[at]!;
    if (quote !== '') {
      if (character === '\\') at += 1;
      else if (character === quote) quote = '';
    } else if ('\'"`'.includes(character)) quote = character;
    else if ('([{'.includes(character)) depth += 1;
    else if (')]}'.includes(character)) depth -= 1;
    if (depth === 0) return at;
  }
  return text.length;
}

/** The calls of `table` and `dataTable` in a source, each with its arguments. */
function listsOf(source: string): string[] {
  const calls = source.matchAll(/(?<!function |\.)\b(?:table|dataTable)(?:<[^;{}]*?>)?\(/g);
  return [...calls].map(({ 0: call, index }) => {
    const start = index + call.length;
    return source.slice(start, closing(source, start));
  });
}

/** The newest entries of a ledger are declared with all of them. */
const saysCard = (list: string) => /\bcard[:,]|\.\.\.ledgerOf\(/.test(list);

describe('equal columns', () => {
  const columns = [
    { key: 'name', header: 'Name', cell: (row: { name: string }) => row.name },
    { key: 'place', header: 'Location', cell: () => 'New York 1' },
    { key: 'note', header: 'Note', cell: () => '' },
    { key: 'out', header: 'Out', kind: 'figure' as const, cell: () => '0 B' },
    { key: 'change', header: 'Change', kind: 'actions' as const, cell: () => html`<button>Edit</button>` },
  ];
  const listOf = (names: readonly string[], more = {}) =>
    String(
      table({
        ...{ caption: 'Servers', columns, rows: names.map((name) => ({ name })), card: { line: ['place'] } },
        ...{ empty: { title: 'None', text: '' }, ...more },
      }),
    );
  const headersOf = (list: string) =>
    [...list.matchAll(/<th scope="col"[^>]*>([^<]*)/g)].map(([, text]) => text);

  test('a list of over ten rows can be asked for all of them; one that says itself what comes first is so at every width', () => {
    const names = (count: number) => Array.from({ length: count }, (_, at) => `server-${at}`);
    assert.match(listOf(names(11)), /<details class="show-all on-phone"><summary>Show all 11</);
    assert.doesNotMatch(listOf(names(10)), /show-all/);
    const isFirst = (_row: unknown, at: number) => at < 5;
    assert.match(listOf(names(11), { isFirst }), /<details class="show-all"><summary>Show all 11</);
  });

  test('what all rows have in common is said once, below them; buttons and what a total differs in stay', () => {
    const list = listOf(['a', 'b', 'c']);
    assert.deepEqual(headersOf(list), ['Name', 'Change']);
    assert.match(list, /All rows: <span>Location: New York 1<\/span><span>Out: 0 B<\/span>/);
    assert.deepEqual(headersOf(listOf(['a', 'b'])), ['Name', 'Location', 'Note', 'Out', 'Change']);
    const sorted = listOf(['a', 'b', 'c'], { sort: { by: 'place', direction: 'asc' } });
    assert.deepEqual(headersOf(sorted), ['Name', 'Location', 'Change']);
    const same = listOf(['a', 'a', 'a']);
    assert.deepEqual(headersOf(same), ['Name', 'Change'], 'the first column is the row');
  });
});

test('a table shows its first rows until the reader asks for all, which needs no script', () => {
  const listOf = (firstRows: number) =>
    String(
      table({
        ...{ caption: 'Minutes', card: { line: [] }, rows: ['a', 'b', 'c'] },
        isFirst: (_row, index) => index < firstRows,
        columns: [{ key: 'name', header: 'Name', cell: (row: string) => row }],
        empty: { title: 'None', text: '' },
      }),
    );
  assert.equal(listOf(2).match(/class="is-beyond"/g)?.length, 1);
  assert.match(listOf(2), /<details class="show-all"><summary>Show all 3<\/summary><\/details>/);
  assert.doesNotMatch(listOf(3), /is-beyond|show-all/);
});

describe('cards', () => {
  test('every list declares its card', () => {
    const silent: string[] = [];
    let count = 0;
    for (const folder of ['operations', 'monitor', 'service-kit']) {
      for (const path of readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })) {
        if (!path.endsWith('.ts') || path.endsWith('.test.ts') || path.includes('testing/')) continue;
        // Passes on what its caller declared.
        if (`${folder}/${path}` === 'service-kit/web/data-table.ts') continue;
        const source = readFileSync(`${root}${folder}/${path}`, 'utf8');
        if (
          !/\b(?:table|dataTable),?\n[^;]*from '#service-kit|\b(?:table|dataTable)\b[^;]*from '(?:#service-kit|\.\/table)/.test(
            source,
          )
        )
          continue;
        const lists = listsOf(source);
        count += lists.length;
        silent.push(
          ...lists.filter((one) => !saysCard(one)).map((one) => `${folder}/${path}: ${one.slice(0, 60)}`),
        );
      }
    }
    assert.deepEqual(silent, []);
    assert.ok(count >= 140, `${count} lists`);
  });

  test('a list without a card is found', () => {
    assert.deepEqual(listsOf("x(table<Row>({ caption: 'a)', rows }))").map(saysCard), [false]);
    assert.deepEqual(listsOf("dataTable(request, { card: { line: ['a'] } })").map(saysCard), [true]);
  });

  test('the title, the second line, the rest and what is left out', () => {
    const places = (card?: { title?: string; line: string[]; without?: string[] }) => {
      const shown = table<string>({
        caption: 'Rules',
        columns: [
          { key: 'number', header: '#', kind: 'figure', cell: () => '1' },
          { key: 'name', header: 'Name', cell: (row) => row },
          { key: 'state', header: 'State', cell: () => 'on' },
          { key: 'text', header: 'Text', cell: () => 'long' },
          { key: 'act', header: '', kind: 'actions', cell: () => '' },
        ],
        rows: ['a'],
        ...(card && { card }),
        empty: { title: 'None', text: '' },
      });
      const cells = /<tbody>(.*)<\/tbody>/s.exec(String(shown))![1]!;
      return [...cells.matchAll(/<t[hd][^>]* on-(\w+)"(?: data-header="([^"]*)")?/g)].map(
        ([, place, header]) => (header === undefined ? place : `${place} ${header}`),
      );
    };
    assert.deepEqual(places(), ['title', 'line', 'line', 'line', 'rest']);
    const card = { title: 'name', line: ['state', 'absent'], without: ['number'] };
    assert.deepEqual(places(card), ['off', 'title', 'line', 'rest Text', 'rest']);
  });

  test('a figure has its unit beside its header, since a card has no head', () => {
    const shown = table<number>({
      caption: 'Plans',
      columns: [
        { key: 'name', header: 'Name', cell: () => 'KVM 1' },
        { key: 'memory', header: 'Memory', unit: 'GiB', kind: 'figure', cell: (row) => row },
      ],
      rows: [2],
      card: { line: ['memory'] },
      empty: { title: 'None', text: '' },
    });
    assert.match(String(shown), /data-header="Memory, GiB">2</);
  });
});
