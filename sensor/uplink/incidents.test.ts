import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { createFlood, dividedThresholds, packetsAtThreshold } from '#sensor/testing/attack-traffic.ts';
import { createDetectingSensor, detectionPlan } from '#sensor/testing/detecting-sensor.ts';
import { receiptFor, startFakeMonitor, uploadIn } from '#sensor/testing/fake-monitor.ts';
import { firstMinute, openSpool, sampleMinute, temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { createUplink } from './index.ts';

const shape = { class: 'syn_flood', version: 4, direction: 'inbound', ratio: 3 } as const;
const divided = dividedThresholds(200);
const flood = {
  step: createFlood(shape, 1),
  perSecond: packetsAtThreshold(shape, divided) * shape.ratio,
  from: 3.5,
  to: 60,
};
const plan = detectionPlan({ inbound: { syn_pps: divided.inbound.syn_pps }, outbound: {} });

/** A folder with minutes that wait, and an incident behind them: the sensor was killed before it sent anything. */
async function killedSensor(folder: string): Promise<string[]> {
  const { spool } = openSpool(folder);
  for (let i = 0; i < 3; i += 1) spool.append([sampleMinute(firstMinute + i * 60, 100)], []);
  spool.close();
  const sensor = await createDetectingSensor(folder);
  sensor.follow(plan);
  await sensor.play([flood], 8);
  const ids = sensor.detection.active().map(({ target }) => target);
  sensor.spool.close();
  return ids;
}

for (const takesIncidents of [true, false])
  test(`NET-9.2: incidents ${takesIncidents ? 'of a killed sensor leave first, to their own address' : 'wait for a monitor that takes them, and minutes do not wait for them'}`, async (t) => {
    const folder = temporaryFolder(t);
    assert.deepEqual(await killedSensor(folder), ['192.0.2.7']);
    const monitor = await startFakeMonitor(t, (request) => receiptFor(request));
    const { spool, clock } = openSpool(folder);
    const client = createMonitorClient(monitor.url);
    const uplink = createUplink({ spool, client, clock, reporter: silentReporter });
    uplink.announce(takesIncidents);
    await uplink.start();
    t.after(async () => {
      await uplink.stop();
      spool.close();
    });
    await monitor.received(takesIncidents ? 4 : 3);
    const minutes = ['/agent/v1/telemetry', '/agent/v1/telemetry', '/agent/v1/telemetry'];
    assert.deepEqual(
      monitor.requests.map(({ path }) => path),
      takesIncidents ? ['/agent/v1/incidents', ...minutes] : minutes,
    );
    if (takesIncidents) {
      const { incidents, minutes: none } = uploadIn(monitor.requests[0]!);
      assert.deepEqual(none, []);
      assert.deepEqual(
        incidents!.map(({ revision, class: name, state }) => [revision, name, state]),
        [[1, 'syn_flood', 'active']],
      );
      return;
    }
    uplink.announce(true);
    await monitor.received(4);
    assert.equal(monitor.requests[3]!.path, '/agent/v1/incidents');
  });
