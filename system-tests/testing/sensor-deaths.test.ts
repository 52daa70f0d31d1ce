import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findDeafTimes } from './sensor-deaths.ts';

const at = (time: string) => Date.parse(`2026-11-22T${time}Z`);
const firstLife = [
  '23:58:01  info   sensor      capture listens  capture=up0',
  '23:58:01  info   sensor      capture listens  capture=br0',
  '23:58:01  info   sensor      sensor runs  monitor=http://127.0.0.1:1  captures=uplink:up0,bridge:br0',
  '',
].join('\n');
const death = { fromMs: at('23:59:30.500'), logEnd: firstLife.length };

test('a killed sensor is deaf until the last of its captures listens again, also over midnight', () => {
  const log = `${firstLife}23:59:50  info   sensor      capture listens  capture=br0
00:00:20  info   sensor      capture listens  capture=up0
00:03:00  info   sensor      capture listens  capture=br0
`;
  const midnight = at('00:00:00') + 86_400_000;
  assert.deepEqual(findDeafTimes(log, [death]), [{ fromMs: death.fromMs, toMs: midnight + 21_000 }]);
});

test('before all captures listen again the end is not known', () => {
  assert.equal(findDeafTimes(firstLife, [death]), null);
  assert.equal(
    findDeafTimes(`${firstLife}23:59:50  info  sensor  capture listens  capture=br0`, [death]),
    null,
  );
  assert.deepEqual(findDeafTimes(firstLife, []), []);
});
