import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { ScanResult, ScanStarted } from '#contracts/sensor-api/port-scans.ts';
import { createMonitorClient, type MonitorClient } from '#sensor/monitor-client/index.ts';
import { type FakeAnswer, startFakeMonitor } from '#sensor/testing/fake-monitor.ts';
import { openLedger } from './ledger.ts';
import { createReportSender } from './report-sender.ts';

const at = '2026-11-23T08:00:00.000Z';
const scanId = '0193a1f0-0000-7000-8000-00000000000a';
const attempt = {
  ...{ plan_revision: 1, scan_id: scanId, scan_request_id: scanId, target_id: 't1', at },
  profile: 'full' as const,
};
const started: ScanStarted = { kind: 'started', ...attempt, pool: 'customer' };
const result: ScanResult = {
  ...{ kind: 'result', ...attempt, state: 'partial', started_at: at, finished_at: at },
  ...{ phases: [], services: [], notes: ['interrupted'] },
};

test('NET-2.7.9, NET-8.5: a report stays until a receipt for it, waits 45 s for that, and goes again; a final refusal removes it', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-sender-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const receipt = (scan_id: string, word = 'accepted') => ({
    status: 200,
    body: { scan_id, receipt: word },
  });
  const error = { error: { code: 'scans.malformed', message: 'no' } };
  const answers: [FakeAnswer, boolean][] = [
    [{ status: 200, body: {} }, true],
    [receipt('0193a1f0-0000-7000-8000-00000000000b'), true],
    [receipt(scanId, 'maybe'), true],
    [{ status: 503, body: error }, true],
    [{ status: 422, body: {} }, true],
    [{ status: 404 }, true],
    [{ status: 200, cut: true }, true],
    [receipt(scanId, 'duplicate'), false],
    [{ status: 422, body: error }, false],
  ];
  let turn = 0;
  const monitor = await startFakeMonitor(t, () => answers[turn]![0], { plansScans: true });
  const inner = createMonitorClient(monitor.url);
  const timeouts = new Set<number>();
  const client: MonitorClient = {
    url: inner.url,
    request(request) {
      timeouts.add(request.timeoutMs);
      return inner.request(request);
    },
  };
  const clock = createTestClock(Date.parse(at));
  const ledger = openLedger({ directory: folder, clock, onDamaged: assert.fail });
  ledger.begin(started, result);
  ledger.end(result);
  const naps = new EventTarget();
  let napMs = 0;
  const stop = new AbortController();
  const sender = createReportSender({
    ...{ client, ledger, reporter: silentReporter },
    clock: {
      ...clock,
      // It rests after each failed attempt, and when nothing waits.
      wait(ms, signal) {
        napMs = ms;
        naps.dispatchEvent(new Event('nap'));
        return clock.wait(ms, signal);
      },
    },
  });
  let before = ledger.nextReport()!;
  let napped = once(naps, 'nap');
  const running = sender.run(stop.signal);
  for (; turn < answers.length; ) {
    const [, stays] = answers[turn]!;
    if (stays) {
      await napped;
      assert.deepEqual(ledger.nextReport(), before, `after answer ${turn}`);
      turn += 1;
      napped = once(naps, 'nap');
      await clock.advance(600_000);
    } else {
      // The next report follows at once.
      await monitor.received(turn + 1);
      turn += 1;
      if (turn === answers.length) await napped;
      before = ledger.nextReport() ?? before;
    }
  }
  assert.equal(ledger.pending().count, 0);
  assert.deepEqual([...timeouts], [45_000]);
  assert.equal(napMs, 5000, 'nothing waits: it looks every five seconds');
  stop.abort();
  await running;
  ledger.close();
});
