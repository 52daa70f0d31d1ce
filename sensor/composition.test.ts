import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { startParts } from '#common/lifecycle/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { startFakeMonitor } from '#sensor/testing/fake-monitor.ts';
import { untilWaiting } from '#sensor/testing/pass-time.ts';
import { firstMinute, temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { compose } from './composition.ts';
import { readSensorConfig } from './config.ts';

const identity = {
  sensorId: 5,
  siteId: 1,
  siteName: 'Test site',
  credential: `svcsen_5_${'s'.repeat(43)}`,
};

async function composed(t: TestContext) {
  const plan = { plan_version: 1, local_cidrs: ['192.0.2.0/24'], protected_targets: [] };
  const monitor = await startFakeMonitor(t, () => ({ status: 200, body: plan }));
  const clock = createTestClock(firstMinute * 1000);
  const config = readSensorConfig({
    SVC_SENSOR_STATE_DIR: temporaryFolder(t),
    SVC_MONITOR_URL: monitor.url,
    SVC_SENSOR_CAPTURES: 'uplink:none0',
  });
  const sensor = compose(config, { clock, reporter: silentReporter });
  return { monitor, clock, parts: sensor.createParts(identity) };
}

test('the plan is fetched by the clock that the sensor is composed with', async (t) => {
  const { monitor, clock, parts } = await composed(t);
  // The collection would open the interface, and the inventory reads this host's.
  const some = parts.filter(({ name }) => name === 'spool' || name === 'plan');
  const stop = await startParts(some, silentReporter);
  const plans = () => monitor.requests.filter(({ path }) => path === '/agent/v1/plan').length;
  for (let expected = 1; expected <= 3; expected += 1) {
    await untilWaiting(clock);
    assert.equal(plans(), expected);
    await clock.advance(30_000);
    while (plans() === expected) await new Promise((resolve) => setImmediate(resolve));
  }
  await stop();
});
