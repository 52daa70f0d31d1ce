import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool } from '#sensor/spool/index.ts';
import { findDeafTimes, hasListened, killSensor, minutesOf } from './sensor-deaths.ts';

const at = (time: string) => Date.parse(`2026-11-22T${time}Z`);
const firstLife = [
  '23:58:01  info   sensor      capture listens  capture=up0',
  '23:58:01  info   sensor      capture listens  capture=br0',
  '23:58:01  info   sensor      sensor runs  monitor=http://127.0.0.1:1  captures=uplink:up0,bridge:br0',
  '',
].join('\n');
const death = { fromMs: at('23:59:30.500'), logEnd: firstLife.length, isMinuteBeforeKept: true };

test('a killed sensor does not listen until the last of its captures does again, also over midnight', () => {
  const log = `${firstLife}23:59:50  info   sensor      capture listens  capture=br0
00:00:20  info   sensor      capture listens  capture=up0
00:03:00  info   sensor      capture listens  capture=br0
`;
  const midnight = at('00:00:00') + 86_400_000;
  assert.deepEqual(findDeafTimes(log, [death]), [{ fromMs: death.fromMs, toMs: midnight + 21_000 }]);
});

test('before all captures listen again the end is unknown', () => {
  assert.equal(findDeafTimes(firstLife, [death]), null);
  assert.equal(
    findDeafTimes(`${firstLife}23:59:50  info  sensor  capture listens  capture=br0`, [death]),
    null,
  );
  assert.deepEqual(findDeafTimes(firstLife, []), []);
});

test('a sensor killed before the previous minute was on disk has lost that minute too', () => {
  const log = `${firstLife}23:59:31  info   sensor      capture listens  capture=br0
23:59:31  info   sensor      capture listens  capture=up0
`;
  const minutes = (isMinuteBeforeKept: boolean) =>
    [...minutesOf(findDeafTimes(log, [{ ...death, isMinuteBeforeKept }])!)].map((one) => one * 1000);
  assert.deepEqual(minutes(true), [at('23:59:00')]);
  assert.deepEqual(minutes(false), [at('23:58:00'), at('23:59:00')]);
});

test('a sensor listens when it runs and each of its captures does, in any order of its log lines', () => {
  const [uplink, bridge, runs] = firstLife.split('\n');
  assert.ok(hasListened(firstLife));
  assert.ok(hasListened([bridge, runs, uplink].join('\n')));
  assert.ok(!hasListened([bridge, runs].join('\n')));
  assert.ok(!hasListened([bridge, uplink].join('\n')));
});

test('the log and the disk are read in the state at the kill', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-sensor-deaths-'));
  try {
    const options = { directory, bytesMax: 16 * 1024 * 1024, sensorVersion: '', kinds: recordKinds };
    const spool = createSpool({ ...options, clock: systemClock, reporter: silentReporter });
    const kill = async () => {
      const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
      const exited = once(child, 'exit');
      const readLog = () => firstLife;
      const death = await killSensor({ pid: child.pid!, stateDirectory: directory, readLog });
      assert.deepEqual(await exited, [null, 'SIGKILL']);
      assert.equal(death!.logEnd, firstLife.length);
      return death!.isMinuteBeforeKept;
    };
    spool.open();
    assert.equal(await kill(), false);
    const thisMinute = Math.floor(Date.now() / 60_000) * 60;
    const gap = {
      fromMinute: thisMinute - 300,
      toMinute: thisMinute,
      capture: '',
      reason: 'sensor_down' as const,
    };
    spool.append([], [gap]);
    assert.equal(await kill(), true);
    spool.close();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
