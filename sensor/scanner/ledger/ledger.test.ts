import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ScanResult, ScanStarted } from '#contracts/sensor-api/port-scans.ts';
import { openLedger } from './index.ts';

const day = 86_400_000;
const at = '2026-11-23T08:00:00.000Z';
const idOf = (n: number) => `0193a1f0-0000-7000-8000-${String(n).padStart(12, '0')}`;
function reports(n: number, targetId = `t${n}`, requestId: string | null = null) {
  const attempt = {
    ...{ plan_revision: 1, scan_id: idOf(n), scan_request_id: requestId, target_id: targetId, at },
    profile: 'common' as const,
  };
  const started: ScanStarted = { kind: 'started', ...attempt, pool: 'hourly' };
  const result: ScanResult = {
    ...{ kind: 'result', ...attempt, state: 'partial', started_at: at, finished_at: at },
    ...{ phases: [], services: [], notes: ['interrupted'] },
  };
  return { started, result };
}
function open(t: TestContext, folder = mkdtempSync(join(tmpdir(), 'svc-ledger-'))) {
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const said: string[] = [];
  const time = { nowMs: Date.parse(at) };
  const options = { directory: folder, nowMs: () => time.nowMs, onDamaged: (why: string) => said.push(why) };
  return { ledger: openLedger(options), folder, time, said, again: () => openLedger(options) };
}

test('NET-2.7.3: a scan id starts once, also after a kill, and the interrupted attempt is reported with what it found', (t) => {
  const { ledger, again } = open(t);
  const { started, result } = reports(1, 't1', idOf(1));
  assert.equal(ledger.begin(started, result), true);
  assert.equal(ledger.begin(started, result), false);
  const found = { ...result, services: [{ port: 22 }] } as unknown as ScanResult;
  ledger.note(found);
  // Not closed: the sensor was killed.
  const next = again();
  assert.equal(next.begin(started, result), false);
  assert.equal(next.wasStarted(idOf(1)), true);
  const first = next.nextReport()!;
  assert.equal(JSON.parse(first.body).kind, 'started');
  next.removeReport(first.id);
  const second = JSON.parse(next.nextReport()!.body);
  assert.deepEqual([second.kind, second.state, second.services], ['result', 'partial', [{ port: 22 }]]);
  const third = again();
  assert.equal(third.pending().count, 1, 'it is reported once');
  for (const one of [ledger, next, third]) one.close();
});

test('NET-8.5: a result stays until its receipt; withdrawn requests never start and are forgotten after seven days', (t) => {
  const { ledger, time, again } = open(t);
  const { started, result } = reports(1);
  ledger.begin(started, result);
  ledger.end({ ...result, state: 'complete', notes: [] });
  assert.equal(ledger.pending().count, 2);
  ledger.close();
  const next = again();
  assert.deepEqual([next.pending().count, next.lastStartedAtMs('t1', 'common')], [2, time.nowMs]);
  next.withdraw([idOf(9)]);
  const request = reports(9, 't9', idOf(9));
  assert.equal(next.begin(request.started, request.result), false);
  time.nowMs += 7 * day + 1;
  const other = reports(2);
  assert.equal(next.begin(other.started, other.result), true);
  assert.equal(next.wasStarted(idOf(9)), false);
  assert.equal(next.lastStartedAtMs('t1', 'common'), null);
  next.close();
});

test('NET-8.5: routine attempts keep one row for each target; a request is never removed for room', (t) => {
  const { ledger } = open(t);
  const request = reports(1, 'a', idOf(1));
  ledger.begin(request.started, request.result);
  ledger.end(request.result);
  for (let n = 2; n < 40; n += 1) {
    const { started, result } = reports(n, 'a');
    assert.equal(ledger.begin(started, result), true);
    ledger.end(result);
  }
  assert.deepEqual(
    [ledger.wasStarted(idOf(1)), ledger.wasStarted(idOf(38)), ledger.wasStarted(idOf(39))],
    [true, false, true],
  );
  ledger.close();
});

test('a damaged ledger is put aside and scans go on', (t) => {
  const { ledger, folder, again, said } = open(t);
  ledger.close();
  writeFileSync(
    join(folder, 'scans.sqlite'),
    'this is no database, and it is long enough to be read as one'.repeat(100),
  );
  const next = again();
  const { started, result } = reports(1);
  assert.equal(next.begin(started, result), true);
  assert.equal(said.length, 1);
  assert.ok(readdirSync(folder).includes('scans.sqlite.damaged'));
  next.close();
});
