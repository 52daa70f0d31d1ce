import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMonitorWorld } from '#monitor/testing/index.ts';
import { createWake } from './wake.ts';

for (const topic of ['targets', 'incidents'] as const)
  test(`a loop that starts after the wake of ${topic} misses no change, also where the database is slow to be asked`, async () => {
    await using world = await createMonitorWorld();
    const { pool } = world.database;
    const gate = Promise.withResolvers<void>();
    const slow = new Proxy(pool, {
      get: (of, name) =>
        name === 'connect' ? () => gate.promise.then(() => of.connect()) : Reflect.get(of, name, of),
    });
    const woken = Promise.withResolvers<void>();
    let wakes = 0;
    const wake = createWake(() => slow, topic, {
      wake() {
        wakes += 1;
        if (hasChanged) woken.resolve();
      },
    });
    let hasChanged = false;
    let hasStarted = false;
    const started = wake.start().then(() => {
      hasStarted = true;
    });
    try {
      await pool.query('select 1');
      assert.equal(hasStarted, false, 'nothing would be heard yet');
      gate.resolve();
      await started;
      hasChanged = true;
      wakes = 0;
      await pool.query(`select pg_notify('svc_monitor', $1)`, [topic]);
      await woken.promise;
      assert.equal(wakes, 1);
    } finally {
      gate.resolve();
      await wake.stop();
    }
  });
