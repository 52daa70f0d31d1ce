// Slow: restarts and kills a whole sensor under traffic, over whole live windows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeRestarts, restartPlants } from './judge-restarts.ts';
import { interruptSensor } from './restarts.prove.ts';

const restarts = Number(process.env.SVC_TEST_RESTARTS ?? 3);
const canListen = process.getuid?.() === 0;

test(`NET-2.4.2: a sensor that is restarted ${restarts} times counts every frame once but those of seconds that are named`, async (t) => {
  if (!canListen) {
    assert.ok(!process.env.CI, 'this test needs root: run the gate as root in CI');
    t.diagnostic('left out: needs root to listen');
    return;
  }
  const report = (line: string) => t.diagnostic(line);
  const done = await interruptSensor({ n: restarts, signal: 'SIGTERM', everyMs: 9_000, report });
  const { verdict, uploads, frames, interruptions } = done;
  assert.deepEqual(verdict.offences, []);
  // Beside other tests a start may take longer than what was heard: the judge has named each time that was not.
  assert.ok(verdict.heardFrames > 0);
  for (const [name, plant] of Object.entries(restartPlants))
    assert.notDeepEqual(judgeRestarts(plant([...uploads]), frames, interruptions).offences, [], name);
});

test('NET-2.4.2: a sensor that is killed loses at most the live window it was in, and the time is named', async (t) => {
  if (!canListen) {
    assert.ok(!process.env.CI, 'this test needs root: run the gate as root in CI');
    t.diagnostic('left out: needs root to listen');
    return;
  }
  const report = (line: string) => t.diagnostic(line);
  const { verdict } = await interruptSensor({ n: 1, signal: 'SIGKILL', everyMs: 25_000, report });
  assert.deepEqual(verdict.offences, []);
});
