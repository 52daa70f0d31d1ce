import assert from 'node:assert/strict';
import { test } from 'node:test';
import { treeOf } from '../testing/tree-of.ts';
import { checkGlossary, readRefusedTerms } from './index.ts';

const glossary = `| Term | Meaning | Where | Not |
|---|---|---|---|
| network interface, NIC | an adapter | code | \`network card\`, adapter |
| caller | who calls | everywhere | \`whoever\` |
`;

function check(files: Record<string, string>, names: Record<string, string[]> = {}) {
  const faults = checkGlossary(treeOf({ 'docs/glossary.md': glossary, ...files }), names);
  return faults.map(({ file, what }) => `${file}: ${what}`);
}

test('a tree without refused terms has no fault', () => {
  assert.deepEqual(check({ 'operations/a.ts': '// The adapter of the caller.' }), []);
});

for (const [where, file, text] of [
  ['a comment', 'operations/a.ts', '\n/** Whoever calls. */'],
  ['an identifier', 'lab/a.ts', '\nconst whoeverCalls = 1;'],
  ['a page', 'operations/a.page.ts', "\ntext: 'For whoever calls'"],
  ['a document', 'docs/a.md', '\nFor whoever calls.'],
] as const)
  test(`a refused term in ${where} is a fault with its line`, () => {
    assert.deepEqual(check({ [file]: text }).length, 1);
    assert.match(
      check({ [file]: text })[0]!,
      new RegExp(`^${file}:2: write another term for "whoever"`, 'i'),
    );
  });

test('a refused term of two words is found across the lines of a comment', () => {
  const text = '/**\n * The network\n * card of a server.\n */';
  assert.deepEqual(check({ 'lab/a.ts': text }), ['lab/a.ts:2: write another term for "network card"']);
});

test('a term that the glossary gives in plain text is left to reviewers', () => {
  assert.deepEqual(readRefusedTerms(glossary), ['network card', 'whoever']);
});

test('records of the past and applied migrations are not checked', () => {
  const text = 'whoever';
  assert.deepEqual(check({ 'CHANGELOG.md': text, 'operations/migrations/0001-a.sql': text }), []);
});

test('a name of another system is ignored in its own file only', () => {
  const namesOfOthers = { 'lab/a.ts': ['--user whoever'] };
  const files = { 'lab/a.ts': 'run --user whoever', 'lab/b.ts': 'run --user whoever' };
  assert.deepEqual(check(files, namesOfOthers), ['lab/b.ts:1: write another term for "whoever"']);
});

test('a glossary without refused terms is an error, not a pass', () => {
  assert.throws(() => readRefusedTerms('| a | b | c | d |'), /lists no term/);
});
