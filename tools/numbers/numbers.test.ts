import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { evaluate, type Limit, numbersIn, readCode } from './number.ts';
import { limitsOfClientApi } from './of-client-api.ts';
import { limitsOfMonitor } from './of-monitor.ts';
import { limitsOfScans } from './of-scans.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const limitsOfMonitoring: readonly Limit[] = [...limitsOfScans, ...limitsOfMonitor];
const limits: readonly Limit[] = [...limitsOfClientApi, ...limitsOfMonitoring];

for (const { rule, numbers } of limits)
  for (const { what, value, unit, file, code, test: testFile } of numbers)
    test(`${rule}: ${what} is ${value} ${unit}`, () => {
      const { text, number } = readCode(code);
      assert.equal(read(file).split(text).length, 2, `“${text}” stands once in ${file}`);
      assert.equal(evaluate(number), value);
      assert.match(read(testFile), /^test\(|^ {2}test\(/m, testFile);
    });

test('every number in the text of a limit has its place in the code, or the reason why it has none', () => {
  for (const { text, numbers, elsewhere = {} } of limits) {
    const words = [...numbers.map((number) => number.words), ...Object.keys(elsewhere)];
    for (const each of words) assert.ok(text.includes(each), `“${each}” is in “${text}”`);
    const rest = words.reduce((left, each) => left.replace(each, ''), text);
    assert.deepEqual(numbersIn(rest), [], text);
  }
});

/** The specification is not part of the product: its folder comes from `SVC_SPEC_DIR` and may be missing. */
const specFolder = resolve(root, process.env.SVC_SPEC_DIR ?? '../shared/spec');

/** Section 8 of a document: the rows of its tables, and the other lines. */
function sectionOf(document: string): { rows: string[]; lines: string[] } {
  const text = readFileSync(join(specFolder, document), 'utf8');
  const section = /^## 8\..*$([\s\S]*?)^## 9\./m.exec(text)![1]!;
  const all = section.split('\n').filter((line) => line !== '');
  const cells = (line: string) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
  const tables = all.map((line, at) => (all[at + 1]?.startsWith('|---') ? '' : line));
  const rows = tables.filter((line) => line.startsWith('|') && !line.startsWith('|---'));
  return {
    rows: rows.map((row) => cells(row).join(' | ')),
    lines: all.filter((line) => !line.startsWith('|')),
  };
}

for (const [document, known, elsewhere] of [
  ['client-api.md', limitsOfClientApi, ['402', '404', '401', '429', '403']],
  // The byte error is a target; tests compare with what nftables counted.
  ['network-monitoring.md', limitsOfMonitoring, ['one', '1']],
] as const)
  test(`section 8 of ${document} has no limit and no number that is not here`, {
    skip: !existsSync(join(specFolder, document)) && 'the specification is not here',
  }, () => {
    const { rows, lines } = sectionOf(document);
    const texts = known.map(({ text }) => text);
    assert.deepEqual(
      rows.filter((row) => !texts.includes(row)),
      [],
    );
    const numbers = new Set<string>([...texts.flatMap(numbersIn), ...elsewhere]);
    for (const line of lines)
      for (const number of numbersIn(line.replace(/^\d+\. /, ''))) assert.ok(numbers.has(number), line);
  });
