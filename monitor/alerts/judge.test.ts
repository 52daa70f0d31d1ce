import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { alertKinds, judge, type SubjectStatus } from './episode.ts';

const runs = Number(process.env.SVC_TEST_ALERT_RUNS ?? 1000);
const kind = 'sensor_silent';

interface Look {
  afterSeconds: number;
  verdict: SubjectStatus;
}

/** Applies a history of verdicts. Returns for each look whether an episode was open. */
function play(looks: readonly Look[]) {
  let nowMs = 1_764_000_000_000;
  let open: { goodSinceMs: number | null } | null = null;
  return looks.map(({ afterSeconds, verdict }) => {
    nowMs += afterSeconds * 1000;
    const before = open !== null;
    const step = judge(kind, open, verdict, nowMs);
    if (step.do === 'open') open = { goodSinceMs: null };
    if (step.do === 'resolve') open = null;
    if (open && step.do === 'recover') open = { goodSinceMs: nowMs };
    if (open && step.do === 'relapse') open = { goodSinceMs: null };
    return { nowMs, verdict, before, after: open !== null };
  });
}

test(`an episode opens on bad facts and resolves after a continuously observed recovery, in ${runs} histories`, () => {
  const look = fc.record<Look>({
    afterSeconds: fc.integer({ min: 1, max: 90 }),
    verdict: fc.constantFrom('bad', 'good', 'good', 'unknown'),
  });
  fc.assert(
    fc.property(fc.array(look, { maxLength: 40 }), (looks) => {
      const history = play(looks);
      for (const [i, at] of history.entries()) {
        if (at.verdict === 'bad') assert.equal(at.after, true, 'what is bad is open');
        if (at.verdict === 'unknown') assert.equal(at.after, at.before, 'what is unknown changes nothing');
        if (!at.before && at.after) assert.equal(at.verdict, 'bad');
        if (at.before && at.after && at.verdict === 'good') {
          // Open as long as the run of good verdicts is too short.
          const first = history.slice(0, i + 1).findLastIndex((one) => one.verdict !== 'good') + 1;
          assert.ok(
            at.nowMs - history[first]!.nowMs < alertKinds[kind].resolveSeconds * 1000,
            'it resolves in time',
          );
        }
        if (at.before && !at.after) {
          const first = history.slice(0, i + 1).findLastIndex((one) => one.verdict !== 'good') + 1;
          assert.ok(at.nowMs - history[first]!.nowMs >= alertKinds[kind].resolveSeconds * 1000);
        }
      }
    }),
    { numRuns: runs, seed: 11 },
  );
});

test('removing a subject ends its episode at once, and opens none', () => {
  assert.deepEqual(judge(kind, { goodSinceMs: null }, 'gone', 0), { do: 'resolve', resolution: 'removed' });
  assert.deepEqual(judge(kind, null, 'gone', 0), { do: 'nothing' });
});
