// Slow: kills and freezes workers and a database while sensors send.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { breakDatabase } from './database-faults.prove.ts';
import { breakNetwork } from './network-faults.prove.ts';
import { forceTakeovers } from './takeovers.prove.ts';
import { killWorkers } from './worker-kills.prove.ts';

const report = () => {};

test('NET-2.2.9: workers killed while sensors send: nothing is lost, nothing doubled', async () => {
  const { offences } = await killWorkers({
    n: 1,
    seed: 3,
    report,
    sensors: 8,
    workers: 1,
    uploads: 60,
    pauseMs: [50, 200],
  });
  assert.deepEqual(offences, []);
});

test('NET-2.2.9: a holder frozen past its lease is followed, and writes no row when it goes on', async () => {
  // That a worker follows, and what is written, counts here; how soon is measured by the proof, on an idle machine.
  const options = { n: 1, seed: 3, report, sensors: 8, workers: 2, latencyMsMax: 120_000 };
  const { offences, latenciesMs } = await forceTakeovers(options);
  assert.deepEqual(offences, []);
  assert.equal(latenciesMs.length, 1);
});

test('NET-2.2.9: a database that is killed and ends sessions loses no upload and doubles none', async () => {
  const { offences, counts } = await breakDatabase({
    n: 2,
    seed: 3,
    report,
    sensors: 10,
    workers: 2,
    inTurn: ['kill', 'end_sessions'],
  });
  assert.deepEqual(offences, []);
  assert.deepEqual(counts, { kill: 1, end_sessions: 1 });
});

test('NET-2.2.9: a commit whose answer is lost is read again, not repeated', async () => {
  const { offences } = await breakNetwork({ n: 2, seed: 5, report, sensors: 4, workers: 1 });
  assert.deepEqual(offences, []);
});
