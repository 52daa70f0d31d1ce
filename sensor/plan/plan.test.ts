import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createMonitorClient, withCredential } from '#sensor/monitor-client/index.ts';
import { type FakeAnswer, refusal, startFakeMonitor } from '#sensor/testing/fake-monitor.ts';
import { passTime, untilWaiting } from '#sensor/testing/pass-time.ts';
import { firstMinute, sampleMinute, temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { createPlanFollower, downgradeForMonitor, parsePlan, type SensorPlan } from './index.ts';

const plan = {
  plan_version: 1,
  application_usage_version: 1,
  application_protocol_version: 1,
  local_cidrs: ['192.0.2.0/24', '2001:db8::/48'],
  protected_targets: ['198.51.100.7'],
};

async function follow(
  t: TestContext,
  answers: FakeAnswer[],
  stateDirectory = temporaryFolder(t),
  onCredential: (isDue: boolean) => void = () => {},
) {
  const monitor = await startFakeMonitor(t, (_, index) => answers[Math.min(index, answers.length - 1)]!);
  const clock = createTestClock(firstMinute * 1000);
  const plans: SensorPlan[] = [];
  const follower = createPlanFollower({
    client: withCredential(createMonitorClient(monitor.url), 'svcsen_1_secret'),
    stateDirectory,
    clock,
    reporter: silentReporter,
    onPlan: (next) => plans.push(next),
    onCredential,
  });
  await follower.start();
  t.after(() => follower.stop());
  const until = async (count: number) => {
    await passTime(clock, () => monitor.requests.length >= count, 1000);
    await untilWaiting(clock);
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
      takesClaims: false,
      detection: null,
      filterRules: null,
      owners: [],
      probes: [],
      omissions: [],
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
  assert.deepEqual(parsed?.omissions, [
    { section: 'site', ignored: 3, leftOut: 73 },
    { section: 'protection', ignored: 1, leftOut: 0 },
  ]);
});

test('who owns an address is believed as a whole or not at all, and only of a monitor that takes spoofed traffic', () => {
  const mac = '52:54:00:00:00:01';
  const owners = [
    { address: '2001:DB8::1', macs: [mac] },
    { address: '192.0.2.1', macs: [] },
    { address: '192.0.2.2', macs: [mac, '52-54-00-00-00-02'] },
    { address: '192.0.2.3', macs: new Array(9).fill(mac) },
    { address: 'x', macs: [mac] },
    null,
  ];
  const parsed = parsePlan({ ...plan, owners_version: 1, owners });
  assert.deepEqual(parsed?.owners, [{ address: '2001:db8::1', macs: [mac] }]);
  assert.deepEqual(parsed?.omissions, [{ section: 'owners', ignored: 5, leftOut: 0 }]);
  assert.deepEqual(parsePlan({ ...plan, owners })?.owners, []);
  assert.deepEqual(
    [1, 2, 3].map((version) => parsePlan({ ...plan, owners_version: version })?.takesClaims),
    [false, true, true],
  );
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
  assert.deepEqual(downgradeForMonitor(minute, parsePlan(plan)!), minute);
  assert.deepEqual(downgradeForMonitor(minute, parsePlan(withoutUsage)!).usage, []);
  const names = downgradeForMonitor(minute, parsePlan(withoutProtocols)!).usage.map((one) => one.name);
  assert.deepEqual(names, ['IP', 'a.example']);
});

test('NET-9.3: recognised protocols are named for monitors of application_protocol_version 1 and later, and only for those', () => {
  const gre = {
    ...sampleMinute(firstMinute, 1),
    usage: [
      {
        client: '192.0.2.1',
        server: '198.51.100.2',
        protocol: 47,
        serverPort: null,
        direction: 'outbound' as const,
        name: 'GRE',
        evidence: 'ip_protocol' as const,
        clientBytes: 1,
        serverBytes: 1,
        packets: 2,
        clientLastSentMs: 0,
        serverLastSentMs: 0,
      },
    ],
  };
  const sentTo = (versions: Record<string, unknown>) =>
    downgradeForMonitor(gre, parsePlan({ plan_version: 1, ...versions })!).usage.map((row) => row.name);
  const usage = { application_usage_version: 1 };
  assert.deepEqual(sentTo({ ...usage, application_protocol_version: 1 }), ['GRE']);
  assert.deepEqual(sentTo({ application_usage_version: 2, application_protocol_version: 7 }), ['GRE']);
  for (const none of [undefined, null, 0, '1', true, 1.5])
    assert.deepEqual(sentTo({ ...usage, application_protocol_version: none }), ['IP']);
  assert.deepEqual(sentTo({ application_protocol_version: 1 }), []);
});

test('NET-9.2: probes are taken from a monitor that takes their results; kinds of a newer one are left out', () => {
  const probe = {
    id: 4,
    kind: 'tcp',
    target: 'example.net',
    port: 443,
    question: null,
    interval_seconds: 10,
    timeout_ms: 2000,
  };
  const offered = [
    probe,
    { ...probe, kind: 'quic' },
    { ...probe, port: 0 },
    { ...probe, interval_seconds: 0 },
    { ...probe, timeout_ms: 60_000 },
    { ...probe, kind: 'dns' },
    { ...probe, kind: 'icmp', port: null, later: 'unknown' },
    { ...probe, kind: 'dns', question: 'example.net' },
    { ...probe, kind: 'http', port: 80, question: 'of another kind' },
    'x',
  ];
  const taken = parsePlan({ ...plan, probes_version: 1, probes: offered })!;
  assert.deepEqual(taken.probes, [
    ...[probe, { ...probe, kind: 'icmp', port: null }],
    ...[
      { ...probe, kind: 'dns', question: 'example.net' },
      { ...probe, kind: 'http', port: null },
    ],
  ]);
  assert.deepEqual(taken.omissions, [{ section: 'probes', ignored: 6, leftOut: 0 }]);
  assert.deepEqual(parsePlan({ ...plan, probes: offered })!.probes, [], 'an older monitor would drop them');
  const many = Array.from({ length: 40 }, (_, id) => ({ ...probe, id: id + 1 }));
  const cut = parsePlan({ ...plan, probes_version: 1, probes: many })!;
  assert.equal(cut.probes.length, 32);
  assert.deepEqual(cut.omissions, [{ section: 'probes', ignored: 0, leftOut: 8 }]);
});

test('NET-9.4: a newer monitor’s sections are ignored, its newer versions take what version 1 takes, and damaged ones are off', () => {
  const newer = parsePlan({
    ...plan,
    live_version: 2,
    probes_version: 3,
    probes: [],
    scan_version: 1,
    scans: { targets: [1, 2, 3] },
  })!;
  assert.deepEqual([newer.takesLive, newer.takesUsage, newer.omissions], [true, true, []]);
  for (const version of [0, -1, 1.5, '1', null, true])
    assert.equal(parsePlan({ ...plan, live_version: version })!.takesLive, false);
  const damaged = parsePlan({
    plan_version: 1,
    local_cidrs: 'all',
    protected_targets: 7,
    probes_version: 1,
  })!;
  assert.deepEqual([damaged.localPrefixes, damaged.protectedAddresses, damaged.probes], [[], [], []]);
});

test('NET-9.5: nothing that a newer monitor says in its plan updates a sensor or makes it fetch anything', async (t) => {
  const newer = {
    ...plan,
    application_usage_version: 2,
    sensor_version: '9.9.9',
    minimum_sensor_version: '9.0.0',
    update_url: 'http://127.0.0.1:1/svc-sensor.deb',
    packages: [{ url: '/agent/v1/package', sha256: '00' }],
  };
  const f = await follow(t, [
    { status: 200, body: newer, headers: { link: '</agent/v1/package>; rel=preload' } },
  ]);
  await f.until(3);
  assert.deepEqual(
    f.monitor.requests.map(({ method, path }) => `${method} ${path}`),
    ['GET /agent/v1/plan', 'GET /agent/v1/plan', 'GET /agent/v1/plan'],
  );
  assert.deepEqual(f.plans.length, 1, 'what it knows of the plan is followed');
  assert.deepEqual(readdirSync(f.stateDirectory), ['plan.json']);
});

test('NET-8.5: a plan is fetched one at a time and given 15 seconds', async (t) => {
  const waiting: PromiseWithResolvers<void>[] = [];
  const timeouts: number[] = [];
  const clock = createTestClock(firstMinute * 1000);
  const follower = createPlanFollower({
    client: {
      url: 'http://127.0.0.1:1',
      async request({ timeoutMs, signal }) {
        timeouts.push(timeoutMs);
        const answer = Promise.withResolvers<void>();
        signal?.addEventListener('abort', () => answer.resolve());
        waiting.push(answer);
        await answer.promise;
        return { status: 304, headers: new Headers(), json: null };
      },
    },
    stateDirectory: temporaryFolder(t),
    clock,
    reporter: silentReporter,
    onPlan: () => {},
  });
  await follower.start();
  t.after(() => follower.stop());
  await clock.advance(300_000);
  assert.deepEqual(timeouts, [15_000], 'while one is under way there is no other');
  waiting[0]!.resolve();
  await untilWaiting(clock);
  await clock.advance(30_000);
  assert.deepEqual(timeouts, [15_000, 15_000]);
});

test('what a plan says of the credential is told with each fetched plan, and is neither stored nor a change of the plan', async (t) => {
  const stateDirectory = temporaryFolder(t);
  const due = { ...plan, credential_version: 1, credential: { expires_at: null, rotate: true } };
  const done = { ...due, credential: { expires_at: '2027-01-01T00:00:00.000Z', rotate: false } };
  const told: boolean[] = [];
  const onCredential = (isDue: boolean) => told.push(isDue);
  const first = await follow(t, [due, done, plan].map(answerWith), stateDirectory, onCredential);
  await first.until(3);
  await first.follower.stop();
  assert.deepEqual(told, [true, false, false]);
  assert.equal(first.plans.length, 1);
  assert.deepEqual(JSON.parse(readFileSync(join(stateDirectory, 'plan.json'), 'utf8')), plan);
  const second = await follow(t, [refusal(500, 'down')], stateDirectory, onCredential);
  assert.equal(second.plans.length, 1);
  assert.equal(told.length, 3, 'a stored plan asks for no rotation');
});

test('rules of the filter: one of which anything is not understood is left out, and an older monitor has none', () => {
  const match = {
    ...{ protocols: [17], source_ports: [123], flags_set: 0, flags_clear: 0, only_fragments: false },
    ...{ length_min: 0, length_max: 65_535 },
  };
  const rule = {
    ...{ target: '2001:DB8::7', class: 'amplification', match, began_at: '2026-01-01T00:00:00Z' },
    ...{ drops_at: null, ends_at: '2026-01-01T01:00:00Z' },
  };
  const bad = [
    ...[
      null,
      { ...rule, target: '192.0.2.0/24' },
      { ...rule, ends_at: 'soon' },
      { ...rule, drops_at: undefined },
    ],
    ...[{ ttl: 7 }, { protocols: [256] }, { source_ports: Array(9).fill(1) }, { length_max: 70_000 }].map(
      (part) => ({ ...rule, match: { ...match, ...part } }),
    ),
  ];
  const parsed = parsePlan({ ...plan, filter_version: 1, filter_rules: [rule, ...bad] });
  const [known] = parsed!.filterRules!;
  assert.equal(parsed!.filterRules!.length, 1);
  assert.deepEqual([known!.target, known!.dropsAtMs, known!.match], ['2001:db8::7', null, match]);
  assert.equal(known!.endsAtMs - known!.beganAtMs, 3_600_000);
  assert.deepEqual(parsed!.omissions, [{ section: 'filter', ignored: bad.length, leftOut: 0 }]);
  const both = parsePlan({ ...plan, filter_version: 1, filter_rules: [rule], outbound_filter_rules: [rule] });
  assert.deepEqual(
    both!.filterRules!.map(({ direction }) => direction),
    ['inbound', 'outbound'],
  );
  assert.equal(parsePlan({ ...plan, filter_rules: [rule] })!.filterRules, null);
});

test('a plan is fetched at once when it is hastened, and sooner while an attack may be filtered', async (t) => {
  const clock = createTestClock(firstMinute * 1000);
  let fetched = 0;
  let urgentEveryMs: number | null = null;
  const follower = createPlanFollower({
    client: {
      url: 'http://127.0.0.1',
      async request() {
        fetched += 1;
        return { status: 304, headers: new Headers(), json: null };
      },
    },
    ...{ stateDirectory: temporaryFolder(t), clock, reporter: silentReporter, onPlan: () => {} },
    urgentEveryMs: () => urgentEveryMs,
  });
  await follower.start();
  t.after(() => follower.stop());
  await untilWaiting(clock);
  assert.equal(fetched, 1);
  urgentEveryMs = 2000;
  follower.hasten();
  await untilWaiting(clock);
  assert.equal(fetched, 2);
  await clock.advance(2000);
  await untilWaiting(clock);
  assert.equal(fetched, 3);
  urgentEveryMs = null;
  await clock.advance(2000);
  await untilWaiting(clock);
  await clock.advance(29_000);
  assert.equal(fetched, 4);
});

const answerWith = (body: object): FakeAnswer => ({ status: 200, body });
