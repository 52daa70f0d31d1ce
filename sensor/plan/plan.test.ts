import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { type FakeAnswer, refusal, startFakeMonitor } from '#sensor/testing/fake-monitor.ts';
import { firstMinute, sampleMinute, temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { createPlanFollower, type SensorPlan, suitMonitor } from './index.ts';
import { parsePlan } from './sensor-plan.ts';

const plan = {
  plan_version: 1,
  application_usage_version: 1,
  application_protocol_version: 1,
  local_cidrs: ['192.0.2.0/24', '2001:db8::/48'],
  protected_targets: ['198.51.100.7'],
};

async function follow(t: TestContext, answers: FakeAnswer[], stateDirectory = temporaryFolder(t)) {
  const monitor = await startFakeMonitor(t, (_, index) => answers[Math.min(index, answers.length - 1)]!);
  const clock = createTestClock(firstMinute * 1000);
  const plans: SensorPlan[] = [];
  const follower = createPlanFollower({
    client: createMonitorClient(monitor.url),
    credential: 'svcsen_1_secret',
    stateDirectory,
    clock,
    reporter: silentReporter,
    onPlan: (next) => plans.push(next),
  });
  await follower.start();
  t.after(() => follower.stop());
  const until = async (count: number) => {
    while (monitor.requests.length < count) {
      await clock.advance(1000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    // When the follower waits again it has read the last answer.
    while (clock.waiting() === 0) await new Promise((resolve) => setImmediate(resolve));
  };
  return { monitor, plans, until, stateDirectory, follower };
}

test('the plan is fetched with the credential, and again with its ETag; what has not changed is not taken twice', async (t) => {
  const f = await follow(t, [{ status: 200, body: plan, headers: { etag: '"a"' } }, { status: 304 }]);
  await f.until(3);
  const [first, second] = f.monitor.requests;
  assert.equal(first!.path, '/agent/v1/plan');
  assert.equal(first!.headers.authorization, 'Bearer svcsen_1_secret');
  assert.equal(first!.headers['if-none-match'], undefined);
  assert.equal(second!.headers['if-none-match'], '"a"');
  assert.deepEqual(f.plans, [
    {
      localPrefixes: ['192.0.2.0/24', '2001:db8::/48'],
      protectedAddresses: ['198.51.100.7'],
      takesUsage: true,
      takesProtocolNames: true,
      takesLive: false,
      ignoredEntries: 0,
    },
  ]);
});

test('failures keep the last plan, and a changed one is taken', async (t) => {
  const changed = { ...plan, local_cidrs: ['10.0.0.0/8'] };
  const f = await follow(t, [
    { status: 200, body: plan },
    refusal(503, 'busy'),
    { status: 200, body: 'nonsense' },
    { status: 200, body: { ...plan, plan_version: 9 } },
    { status: 200, body: changed },
  ]);
  await f.until(5);
  assert.deepEqual(
    f.plans.map((one) => one.localPrefixes.length),
    [2, 1],
  );
});

test('a sensor that starts without its monitor uses the plan it has stored', async (t) => {
  const first = await follow(t, [{ status: 200, body: plan }]);
  await first.until(1);
  await first.follower.stop();
  const second = await follow(t, [refusal(500, 'down')], first.stateDirectory);
  assert.deepEqual(
    second.plans.map((one) => one.protectedAddresses),
    [['198.51.100.7']],
  );
});

test('entries that are no addresses are left out, addresses are made canonical, and bounds hold', () => {
  const parsed = parsePlan({
    ...plan,
    local_cidrs: [
      '2001:DB8::/48',
      '10.0.0.1/8',
      'x',
      5,
      ...Array.from({ length: 200 }, (_, i) => `10.${i}.0.0/16`),
    ],
    protected_targets: ['2001:DB8::1', '999.1.1.1'],
  });
  assert.deepEqual(parsed?.localPrefixes.slice(0, 2), ['2001:db8::/48', '10.0.0.0/16']);
  assert.equal(parsed?.localPrefixes.length, 128);
  assert.deepEqual(parsed?.protectedAddresses, ['2001:db8::1']);
  assert.equal(parsed?.ignoredEntries, 3);
});

test('NET-9.4: an older monitor is sent only what it understands', () => {
  const row = {
    client: '192.0.2.1',
    server: '198.51.100.7',
    protocol: 47,
    serverPort: null,
    direction: 'outbound' as const,
    name: 'GRE',
    evidence: 'ip_protocol' as const,
    clientBytes: 1,
    serverBytes: 0,
    packets: 1,
    clientLastSentMs: 0,
    serverLastSentMs: 0,
  };
  const minute = {
    ...sampleMinute(firstMinute, 1),
    usage: [row, { ...row, evidence: 'dns' as const, name: 'a.example' }],
  };
  const { application_usage_version: _, ...withoutUsage } = plan;
  const { application_protocol_version: __, ...withoutProtocols } = plan;
  assert.deepEqual(suitMonitor(minute, parsePlan(plan)!), minute);
  assert.deepEqual(suitMonitor(minute, parsePlan(withoutUsage)!).usage, []);
  const names = suitMonitor(minute, parsePlan(withoutProtocols)!).usage.map((one) => one.name);
  assert.deepEqual(names, ['IP', 'a.example']);
});
