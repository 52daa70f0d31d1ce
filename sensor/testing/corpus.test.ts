import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { corpusFolder, hasCorpus } from './corpus.ts';
import { type CorpusResult, compareCorpus, corpusTablePath, renderCorpusTable } from './corpus-table.ts';

if (hasCorpus()) testCorpus(compareCorpus());
else {
  test('the traffic corpus is present, or its absence is reported', (t) => {
    const sentence = `no traffic corpus in ${corpusFolder()}: nothing was compared (SVC_CORPUS_DIR names its folder)`;
    t.diagnostic(sentence);
    assert.ok(!process.env.CI, sentence);
  });
}

function testCorpus(results: readonly CorpusResult[]): void {
  test('NET-2.2.6: every capture of the corpus is read and every frame has one verdict', () => {
    assert.equal(results.length, 150);
    for (const { expected, differences } of results) {
      const wrong = differences.filter((one) => one.fact === 'packets' || one.fact === 'sum of verdicts');
      assert.deepEqual(wrong, [], expected.file);
    }
  });

  test('NET-2.4.2: bytes and packets of every conversation equal the corpus, except for differences with a reason', () => {
    const unexplained = results.filter(
      (result) =>
        result.reason === null &&
        result.differences.some((one) => one.kind === 'conversation' || one.kind === 'packets'),
    );
    assert.deepEqual(
      unexplained.map((result) => [result.expected.file, result.differences]),
      [],
    );
  });

  test('NET-2.2.3: every name and every DNS answer of the corpus is found, and no other', () => {
    const wrong = results.filter((result) =>
      result.differences.some((one) => one.kind === 'name' || one.kind === 'dns'),
    );
    assert.deepEqual(
      wrong.map((result) => [result.expected.file, result.differences]),
      [],
    );
  });

  test('there is a reason only for existing differences', () => {
    for (const { expected, differences, reason } of results) {
      assert.equal(reason !== null, differences.length > 0, expected.file);
    }
  });

  test('docs/corpus.md is up to date with the engine', () => {
    const written = readFileSync(corpusTablePath, 'utf8');
    assert.equal(
      written,
      renderCorpusTable(results),
      'run: sh tools/with-node sensor/testing/corpus-table.ts',
    );
  });
}
