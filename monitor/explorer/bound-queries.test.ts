import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { createQueryGate, runningMax, waitingMax } from './bound-queries.ts';

/** Work that says when it began and goes on until it is released. */
function createWork() {
  const begun: string[] = [];
  const releases: (() => void)[] = [];
  const work = (name: string) => () => {
    begun.push(name);
    return new Promise<string>((resolve) => releases.push(() => resolve(name)));
  };
  /** Lets the oldest end, and what follows begin. */
  const release = async () => {
    releases.shift()!();
    await new Promise((done) => setImmediate(done));
  };
  return { begun, work, release };
}

test('of any number of queries only a few run at once, and those who ask take turns', async () => {
  const gate = createQueryGate();
  const { begun, work, release } = createWork();
  const heavy = Array.from({ length: 20 }, (_, i) => gate.run('heavy', undefined, work(`heavy ${i}`)));
  const light = gate.run('light', undefined, work('light'));
  await new Promise((done) => setImmediate(done));
  assert.equal(begun.length, runningMax, 'the others wait');
  await release();
  await release();
  assert.ok(begun.indexOf('light') >= 0 && begun.indexOf('light') <= runningMax + 1, begun.join(', '));
  assert.equal(begun.length, runningMax + 2);
  for (let ended = 2; ended < 21; ended += 1) await release();
  assert.deepEqual(await Promise.all([...heavy, light]).then((all) => all.length), 21);
  assert.equal(begun.length, 21, 'each ran once');
});

test('more waiting queries of one asker are refused with what to do; another still waits in turn', async () => {
  const gate = createQueryGate();
  const { begun, work, release } = createWork();
  const all = Array.from({ length: runningMax + waitingMax }, (_, i) =>
    gate.run('one', undefined, work(`${i}`)),
  );
  await assert.rejects(gate.run('one', undefined, work('more')), (error) => hasCode(error, 'explorer.busy'));
  const other = gate.run('other', undefined, work('other'));
  while (begun.length < all.length + 1) await release();
  for (let i = 0; i < runningMax; i += 1) await release();
  await Promise.all([...all, other]);
});

test('a query that is left while it waits never runs, one that fails makes room', async () => {
  const gate = createQueryGate();
  const { begun, work, release } = createWork();
  const running = Array.from({ length: runningMax }, (_, i) => gate.run('one', undefined, work(`${i}`)));
  const leaving = new AbortController();
  const left = gate.run('one', leaving.signal, work('left'));
  const failing = gate.run('one', undefined, async () => {
    throw new Error('no');
  });
  const last = gate.run('one', undefined, work('last'));
  leaving.abort();
  await assert.rejects(left, (error) => hasCode(error, 'explorer.left'));
  await Promise.all([release(), assert.rejects(failing, /no/)]);
  for (let i = 0; i < runningMax; i += 1) await release();
  await Promise.all([...running, last]);
  assert.deepEqual(begun.includes('left'), false);
});
