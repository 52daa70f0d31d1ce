import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { Value } from 'typebox/value';
import { type Clock, createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { type ScanPlan, ScanReport, type ScanResult } from '#contracts/sensor-api/port-scans.ts';
import { createMonitorClient, type MonitorClient } from '#sensor/monitor-client/index.ts';
import { type FakeAnswer, type ReceivedRequest, startFakeMonitor } from '#sensor/testing/fake-monitor.ts';
import type { HostSample } from './host-pressure.ts';
import type { EndReason, RunningScan, ScanFindings, ScanTask } from './scan.ts';
import { ScanService } from './scan-service.ts';

const at = Date.parse('2026-11-23T08:00:00Z');
const requestId = '0193a1f0-0000-7000-8000-00000000000a';
const target = {
  ...{ target_id: 'nic-3:198.51.100.7', address: '198.51.100.7', interface: 'br0' },
  ...{ source_address: '198.51.100.1', vm_id: 2, nic_id: 3, inventory_at: '2026-11-23T08:00:00Z' },
};
const basePlan: ScanPlan = {
  ...{ plan_version: 1, revision: 4, targets: [target], withdrawn: [] },
  requests: [{ scan_request_id: requestId, target_id: target.target_id }],
};
const healthy: HostSample = {
  ...{ cpuBusy: 0, cpuTotal: 0, memoryAvailable: 8e9, memoryTotal: 16e9, diskFree: 8e9 },
  ...{ cpuSome: 0, memoryFull: 0 },
};

/** A scan without processes that the test ends. */
class FakeScan implements RunningScan {
  readonly findings: Promise<ScanFindings>;
  readonly task: ScanTask;
  pausedFor: string | null = null;
  ended: EndReason | null = null;
  finish: (state?: 'complete' | 'partial') => void = () => {};

  constructor(task: ScanTask) {
    this.task = task;
    this.findings = new Promise((resolve) => {
      this.finish = (state = 'complete') =>
        resolve({
          ...{ profile: task.profile, state, started_at: new Date(at).toISOString() },
          ...{ finished_at: new Date(at).toISOString(), phases: [], services: [] },
          ...{ notes: this.ended === null ? [] : [this.ended], packets: 7, pauses: [] },
        });
    });
  }
  fault = () => null;
  replacedCharacters = () => 0;
  progress = () => ({
    ...{ step: 'tcp_discovery' as const, percent: 50, open: [{ transport: 'tcp' as const, port: 22 }] },
    ...{ pausedFor: this.pausedFor as 'plan' | null, packets: 700 },
  });
  pause(reason: string): void {
    this.pausedFor = reason;
  }
  resume(): void {
    this.pausedFor = null;
  }
  end(reason: EndReason): void {
    this.ended = reason;
    this.finish('partial');
  }
}

/** The client, and a promise that resolves when none of its requests is under way. */
function watchRequests(client: MonitorClient, clock: Clock) {
  const changes = new EventEmitter();
  const fetches = { timeouts: new Set<number>(), underWay: 0, atOnce: 0, at: [] as number[] };
  let underWay = 0;
  const watched: MonitorClient = {
    url: client.url,
    async request(request) {
      underWay += 1;
      const isFetch = request.method === 'GET';
      if (isFetch) fetches.underWay += 1;
      if (isFetch) fetches.timeouts.add(request.timeoutMs);
      if (isFetch) fetches.at.push(clock.monotonicMs());
      fetches.atOnce = Math.max(fetches.atOnce, fetches.underWay);
      try {
        return await client.request(request);
      } finally {
        underWay -= 1;
        if (isFetch) fetches.underWay -= 1;
        changes.emit('ended');
      }
    },
  };
  async function idle(): Promise<void> {
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    // What an answer leads to may be the next request.
    for (await turn(); underWay > 0; await turn()) await once(changes, 'ended');
  }
  return { watched, idle, fetches };
}

async function begin(t: TestContext, folder = mkdtempSync(join(tmpdir(), 'svc-scans-'))) {
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const state = {
    plan: basePlan as ScanPlan | number,
    host: healthy,
    targetFault: null as string | null,
    takes: true,
  };
  const reports: ScanReport[] = [];
  const answer = (request: ReceivedRequest): FakeAnswer => {
    assert.equal(request.path, '/agent/v1/port-scans');
    if (request.method === 'GET') {
      if (typeof state.plan === 'number')
        return { status: state.plan, body: { error: { code: 'x.y', message: 'no' } } };
      const etag = `"${createHash('sha256').update(JSON.stringify(state.plan)).digest('hex')}"`;
      return request.headers['if-none-match'] === etag
        ? { status: 304 }
        : { status: 200, body: state.plan, headers: { etag } };
    }
    if (!state.takes) return { status: 503 };
    const report = JSON.parse(request.body.toString()) as ScanReport;
    assert.ok(Value.Check(ScanReport, report), request.body.toString());
    reports.push(report);
    return { status: 200, body: { scan_id: report.scan_id, receipt: 'accepted' } };
  };
  const monitor = await startFakeMonitor(t, answer, { plansScans: true });
  const clock = createTestClock(at);
  const { watched, idle, fetches } = watchRequests(createMonitorClient(monitor.url), clock);
  const scans: FakeScan[] = [];
  const own: number[] = [];
  const create = () =>
    new ScanService({
      ...{
        client: watched,
        stateDirectory: folder,
        clock,
        reporter: silentReporter,
      },
      pressure: { cpuPercent: 85, cpuWaitPercent: 10 },
      prepare: async () => ({
        start(task) {
          assert.ok(own.at(-1)! > 0, 'captures were told first');
          const scan = new FakeScan(task);
          scans.push(scan);
          return scan;
        },
        close: async () => {},
      }),
      readHost: () => state.host,
      targetFault: () => state.targetFault,
      onOwnTraffic: (pairs) => own.push(pairs.length),
    });
  /** Lets time pass until it is so. */
  const until = async (what: string, isSo: () => boolean, stepMs = 500) => {
    for (let turn = 0; turn < 400; turn += 1) {
      if (isSo()) return;
      await clock.advance(stepMs);
      await idle();
    }
    assert.fail(what);
  };
  const results = () => reports.filter((one): one is ScanResult => one.kind === 'result');
  return { state, reports, results, clock, scans, own, create, until, folder, fetches, monitor };
}

test('NET-2.7.3, NET-4.k: a request starts first, is reported as started, running and complete, and runs once', async (t) => {
  const { reports, results, scans, own, create, until, clock } = await begin(t);
  const service = create();
  await service.start();
  await until('the request starts', () => scans.length === 1);
  assert.deepEqual(scans[0]!.task, {
    ...{ scanId: requestId, address: '198.51.100.7', interfaceName: 'br0' },
    ...{ sourceAddress: '198.51.100.1', profile: 'full' },
  });
  await until('a heartbeat', () => reports.some((one) => one.kind === 'heartbeat'));
  assert.deepEqual([reports[0]!.kind, reports[0]!.scan_request_id], ['started', requestId]);
  assert.equal(service.status().scans[0]!.open, 1);
  scans[0]!.finish();
  await until('its result', () => results().length === 1);
  assert.deepEqual(
    [results()[0]!.scan_id, results()[0]!.state, results()[0]!.packets],
    [requestId, 'complete', 7],
  );
  // Its copy is still in the plan: what starts next is the hourly scan, under an id of its own.
  await until('the hourly scan', () => scans.length === 2);
  assert.deepEqual([scans[1]!.task.profile, scans[1]!.task.scanId === requestId], ['common', false]);
  const beginsAtMs = clock.monotonicMs();
  await until('the sender has nothing to send', () => clock.monotonicMs() - beginsAtMs >= 2000);
  scans[1]!.finish();
  await until('its result', () => results().length === 2);
  assert.ok(clock.monotonicMs() - beginsAtMs <= 3000, 'it is sent at once');
  await until('its traffic is not own any more', () => own.at(-1) === 0);
  await service.stop();
  const again = create();
  await again.start();
  await until('the plan was fetched', () => again.status().why === null);
  assert.equal(scans.length, 2, 'nothing is due');
  await again.stop();
});

test('NET-7.2: a plan that cannot be fetched pauses the same scan; 404 ends it with what was found', async (t) => {
  const { state, results, scans, create, until } = await begin(t);
  const service = create();
  await service.start();
  await until('it starts', () => scans.length === 1);
  state.plan = 503;
  await until('it is paused', () => scans[0]!.pausedFor === 'plan');
  assert.match(service.status().why!, /no fresh plan/);
  state.plan = { ...basePlan, targets: 'none' } as never;
  await until('still', () => scans[0]!.pausedFor === 'plan');
  state.plan = { ...basePlan, revision: 5 };
  await until('it goes on', () => scans[0]!.pausedFor === null);
  assert.equal(scans.length, 1);
  state.plan = 404;
  await until('it is ended', () => scans[0]!.ended === 'interrupted');
  await until('its result', () => results().length === 1);
  assert.deepEqual([results()[0]!.state, results()[0]!.notes], ['partial', ['interrupted']]);
  assert.equal(service.status().why, 'the monitor plans no scans');
  await service.stop();
});

test('NET-7.2, NET-2.7.8: a withdrawn request and a target that is gone or changed end their scan', async (t) => {
  for (const change of [
    { withdrawn: [requestId] },
    { targets: [] },
    { targets: [{ ...target, interface: 'br1' }] },
  ]) {
    const { state, scans, create, until } = await begin(t);
    const service = create();
    await service.start();
    await until('it starts', () => scans.length === 1);
    state.plan = { ...basePlan, revision: 5, ...change };
    await until('it is ended', () => scans[0]!.ended === 'withdrawn');
    await service.stop();
  }
});

test('NET-2.7.8: a target that this host may not scan does not start, and ends where it runs', async (t) => {
  const { state, scans, create, until } = await begin(t);
  state.targetFault = 'its source is not an address of br0';
  const service = create();
  await service.start();
  await until('the plan was fetched', () => service.status().why === null);
  assert.equal(scans.length, 0);
  state.targetFault = null;
  await until('it starts', () => scans.length === 1);
  state.targetFault = 'gone';
  await until('it is ended', () => scans[0]!.ended === 'withdrawn');
  await service.stop();
});

test('NET-8.4: pressure of the host holds new scans up and pauses those that run', async (t) => {
  const { state, scans, create, until } = await begin(t);
  state.host = { ...healthy, memoryFull: 50 };
  const service = create();
  await service.start();
  await until('it waits', () => service.status().why === 'the host is under pressure: memory');
  assert.equal(scans.length, 0);
  state.host = healthy;
  await until('it starts', () => scans.length === 1);
  state.host = { ...healthy, diskFree: 0 };
  await until('it is paused', () => scans[0]!.pausedFor === 'disk');
  state.host = healthy;
  await until('it goes on', () => scans[0]!.pausedFor === null);
  await service.stop();
});

test('NET-8.4: the host is measured every five seconds', async (t) => {
  const { state, clock, create, until } = await begin(t);
  const times: number[] = [];
  const get = () => {
    times.push(clock.monotonicMs());
    return healthy;
  };
  Object.defineProperty(state, 'host', { get });
  const service = create();
  await service.start();
  await until('four measurements', () => times.length > 3);
  assert.deepEqual(
    times.slice(1, 4),
    [1, 2, 3].map((n) => times[0]! + n * 5000),
  );
  await service.stop();
});

test('NET-2.7.9: a result that the monitor does not take waits, also over the end of the sensor, which ends its scans', async (t) => {
  const { state, results, scans, create, until } = await begin(t);
  state.takes = false;
  const service = create();
  await service.start();
  await until('it starts', () => scans.length === 1);
  await service.stop();
  assert.equal(scans[0]!.ended, 'interrupted');
  assert.equal(results().length, 0);
  state.takes = true;
  state.plan = 404;
  const again = create();
  await again.start();
  await until('its result', () => results().length === 1);
  assert.deepEqual([results()[0]!.scan_id, results()[0]!.state], [requestId, 'partial']);
  await again.stop();
});

test('NET-2.7.3, NET-7.3: a clock that jumps by weeks, ahead and back, repeats no request, and scans keep their hour and their times', async (t) => {
  const { state, reports, results, clock, scans, create, until } = await begin(t);
  const other = '0193a1f0-0000-7000-8000-00000000000b';
  state.plan = { ...basePlan, withdrawn: [other] };
  const service = create();
  await service.start();
  await until('the request starts', () => scans.length === 1);
  clock.stepWall(-3 * 86_400_000);
  await until('a heartbeat', () => reports.some((one) => one.kind === 'heartbeat'));
  const times = reports.map((one) => Date.parse(one.at));
  assert.deepEqual([...times].sort(), times, 'its reports are in order');
  assert.ok(times.every((ms) => ms >= at));
  scans[0]!.finish();
  await until('its result', () => results().length === 1);
  await until('the hourly scan', () => scans.length === 2);
  scans[1]!.finish();
  await until('the result of that', () => results().length === 2);
  // For a while the plan names neither; then a monitor that was restored from a backup plans both.
  const again = [requestId, other].map((id) => ({ scan_request_id: id, target_id: target.target_id }));
  for (const days of [3, 30, -30, 400]) {
    clock.stepWall(days * 86_400_000);
    for (const requests of [[], again]) {
      state.plan = { ...basePlan, revision: 1000 + days, requests };
      const before = scans.length;
      const isStarted = () => scans.length > before;
      await until(`an hourly scan starts within the hour, ${days} days away`, isStarted, 60_000);
      scans.at(-1)!.finish();
    }
  }
  assert.deepEqual(
    [...new Set(scans.slice(1).map((one) => one.task.profile))],
    ['common'],
    'no request runs again',
  );
  await service.stop();
});

test('NET-8.5: the plan is fetched one at a time, within 15 s each, and at most every 5 s', async (t) => {
  const { state, clock, create, until, fetches, monitor } = await begin(t);
  const times: number[] = [];
  const service = create();
  const fetched = () => monitor.requests.filter(({ method }) => method === 'GET').length;
  await service.start();
  for (const plan of [basePlan, 503, basePlan]) {
    state.plan = plan;
    for (let n = 0; n < 4; n += 1) {
      const before = fetched();
      await until('a fetch', () => fetched() > before);
      times.push(clock.monotonicMs());
    }
  }
  assert.ok(
    times.every((ms, i) => i === 0 || ms - times[i - 1]! >= 4500),
    times.join(),
  );
  assert.deepEqual([[...fetches.timeouts], fetches.atOnce], [[15_000], 1]);
  await service.stop();
});

test('NET-8.5: where a scan ended and another target waits the plan is fetched after 5 s, otherwise and under pressure after 10 s', async (t) => {
  const { state, scans, create, until, fetches } = await begin(t);
  const targets = Array.from({ length: 6 }, (_, i) => {
    const address = `198.51.100.${i + 10}`;
    return { ...target, address, target_id: `nic-${i}:${address}` };
  });
  state.plan = { ...basePlan, targets, requests: [] };
  const service = create();
  await service.start();
  const begun = async (count: number) => until(`${count} scans`, () => scans.length === count);
  await begun(2);
  scans[0]!.finish();
  await begun(3);
  state.host = { ...healthy, memoryFull: 50 };
  await until('it waits', () => service.status().why === 'the host is under pressure: memory');
  const waiting = fetches.at.length;
  scans[1]!.finish();
  await until('a fetch', () => fetches.at.length === waiting + 1);
  state.host = healthy;
  await begun(4);
  const all = fetches.at.length;
  for (const scan of scans.slice(2, 4)) scan.finish();
  await begun(6);
  for (const scan of scans) scan.finish();
  await until('two more', () => fetches.at.length === all + 3);
  // The first one is answered up to half a second after it began.
  const gaps = fetches.at.slice(1).map((ms, i) => Math.floor((ms - fetches.at[i]!) / 1000));
  assert.deepEqual([gaps[0], gaps[waiting - 1], ...gaps.slice(all - 1)], [5, 10, 5, 10, 10]);
  await service.stop();
});

test('NET-8.5: while the ledger can not be written, a withdrawn scan ends all the same, and its result is stored later', async (t) => {
  const { state, results, scans, create, until, folder } = await begin(t);
  const service = create();
  await service.start();
  await until('it starts', () => scans.length === 1);
  const other = new DatabaseSync(join(folder, 'scans.sqlite'));
  t.after(() => other.close());
  other.exec('BEGIN IMMEDIATE');
  state.plan = { ...basePlan, revision: 5, withdrawn: [requestId] };
  await until('it is ended', () => scans[0]!.ended === 'withdrawn');
  await until('that is said', () => /the scan ledger can not be written/.test(service.status().why ?? ''));
  assert.deepEqual(results(), []);
  other.exec('COMMIT');
  await until('its result', () => results().length === 1);
  assert.deepEqual([results()[0]!.scan_id, results()[0]!.notes], [requestId, ['withdrawn']]);
  await service.stop();
});
