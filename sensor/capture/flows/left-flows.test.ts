import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Field, Flag, flowWords } from './flow-record.ts';
import { LeftFlows } from './left-flows.ts';

test('a clock that is set back, by seconds or by years, does not keep flows for longer', () => {
  for (const back of [30, 1_000_000_000]) {
    const left = new LeftFlows([1, 2]);
    const words = new Int32Array(flowWords);
    const leave = (second: number) => {
      words[Field.flags] = Flag.alive | (Flag.said * 3);
      words[Field.lastSeen] = second;
      left.note(words, 0, second);
    };
    const now = 1_700_000_000;
    leave(now);
    assert.notEqual(left.recall(words, 0, now + 19), 0);
    assert.equal(left.recall(words, 0, now - back), 0);
    leave(now - back);
    assert.notEqual(left.recall(words, 0, now - back + 19), 0);
    assert.equal(left.recall(words, 0, now - back + 40), 0);
  }
});
