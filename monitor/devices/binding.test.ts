import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Binding, placeMinutes, silenceSeconds } from './binding.ts';

const start = 1_790_000_040;
const at = (minute: number) => start + minute * 60;

/** Applies the writes like the database. */
function apply(stored: Binding[], minutes: readonly number[], releasedMs: number | null): Binding[] {
  const { written, removed } = placeMinutes(stored, minutes, releasedMs);
  const next = stored.filter((one) => !removed.includes(one.id!));
  for (const one of written) {
    const id = one.id ?? Math.max(0, ...next.map((known) => known.id!)) + 1;
    const index = next.findIndex((known) => known.id === id);
    if (index < 0) next.push({ ...one, id });
    else next[index] = one;
  }
  return next;
}

const history = (stored: readonly Binding[]) =>
  stored
    .map(({ firstMinute, lastMinute, endedMs, endedBy }) => ({ firstMinute, lastMinute, endedMs, endedBy }))
    .sort((a, b) => a.firstMinute - b.firstMinute);

test('NET-2.1.3: an hour without a sighting ends a binding, and a later sighting in between joins the two', () => {
  let stored = apply([], [at(0), at(61), at(62)], null);
  assert.deepEqual(history(stored), [
    { firstMinute: at(0), lastMinute: at(0), endedMs: at(1) * 1000, endedBy: 'silence' },
    { firstMinute: at(61), lastMinute: at(62), endedMs: null, endedBy: null },
  ]);
  stored = apply(stored, [at(30)], null);
  assert.deepEqual(history(stored), [
    { firstMinute: at(0), lastMinute: at(62), endedMs: null, endedBy: null },
  ]);
});

test('NET-3.3: sightings from before the archive are history, whenever they arrive, and no binding spans the archive', () => {
  const releasedMs = at(10) * 1000 + 500;
  const stored = apply([], [at(9), at(10), at(11)], releasedMs);
  assert.deepEqual(history(stored), [
    { firstMinute: at(9), lastMinute: at(10), endedMs: releasedMs, endedBy: 'archive' },
    { firstMinute: at(11), lastMinute: at(11), endedMs: null, endedBy: null },
  ]);
});

test('a binding that another owner ended is not continued by later sightings', () => {
  const ended: Binding = {
    id: 1,
    firstMinute: at(0),
    lastMinute: at(5),
    endedMs: at(6) * 1000,
    endedBy: 'owner',
  };
  assert.deepEqual(history(apply([ended], [at(4), at(20)], null)), [
    { firstMinute: at(0), lastMinute: at(5), endedMs: at(6) * 1000, endedBy: 'owner' },
    { firstMinute: at(20), lastMinute: at(20), endedMs: null, endedBy: null },
  ]);
});

test('NET-3.3: the same sightings give the same history in every order and every grouping', () => {
  const minutes = fc.uniqueArray(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 14 });
  const cut = fc.option(fc.integer({ min: 0, max: 400 * 60 }), { nil: null });
  fc.assert(
    fc.property(minutes, cut, fc.infiniteStream(fc.nat(1000)), (list, release, randoms) => {
      const releasedMs = release === null ? null : start * 1000 + release * 1000 + 7;
      const inOrder = history(apply([], list.map(at), releasedMs));
      const left = [...list];
      let stored: Binding[] = [];
      while (left.length > 0) {
        const size = 1 + (randoms.next().value! % 3);
        const group: number[] = [];
        while (group.length < size && left.length > 0) {
          group.push(at(left.splice(randoms.next().value! % left.length, 1)[0]!));
        }
        stored = apply(stored, group, releasedMs);
        assert.ok(stored.filter((one) => one.endedMs === null).length <= 1);
      }
      assert.deepEqual(history(stored), inOrder);
      for (const { firstMinute, lastMinute, endedMs } of inOrder) {
        const isOver = releasedMs !== null && firstMinute * 1000 < releasedMs;
        assert.equal(isOver && lastMinute * 1000 >= releasedMs, false);
        if (isOver) assert.ok(endedMs !== null && endedMs <= releasedMs + silenceSeconds * 1000);
      }
    }),
    { numRuns: Number(process.env.SVC_TEST_RUNS ?? 300) },
  );
});
