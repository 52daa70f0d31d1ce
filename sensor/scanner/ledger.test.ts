import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import type { ScanResult, ScanStarted } from '#contracts/sensor-api/port-scans.ts';
import { LedgerStore, openLedger } from './ledger.ts';

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
  const clock = createTestClock(Date.parse(at));
  const options = { directory: folder, clock, onDamaged: (why: string) => said.push(why) };
  return { ledger: openLedger(options), folder, clock, said, again: () => openLedger(options) };
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

test('NET-8.5: a result stays until its receipt; withdrawn requests never start and are forgotten after seven days', async (t) => {
  const { ledger, clock, again } = open(t);
  const { started, result } = reports(1);
  ledger.begin(started, result);
  ledger.end({ ...result, state: 'complete', notes: [] });
  assert.equal(ledger.pending().count, 2);
  ledger.close();
  const next = again();
  assert.deepEqual([next.pending().count, next.lastStartedAtMs('t1', 'common')], [2, clock.nowMs()]);
  next.follow({ requested: [], withdrawn: [idOf(9)] });
  next.follow({ requested: [], withdrawn: [] });
  const request = reports(9, 't9', idOf(9));
  assert.equal(next.begin(request.started, request.result), false);
  await clock.advance(7 * day - 1);
  next.begin(reports(2).started, reports(2).result);
  assert.equal(next.wasStarted(idOf(9)), true);
  await clock.advance(2);
  const other = reports(3);
  assert.equal(next.begin(other.started, other.result), true);
  assert.deepEqual([next.wasStarted(idOf(9)), next.wasStarted(idOf(1))], [false, false]);
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

test('NET-2.7.3, NET-8.5: a clock that jumps ahead by weeks forgets no used and no withdrawn id, also over restarts', (t) => {
  const { ledger, clock, again } = open(t);
  const request = reports(1, 'a', idOf(1));
  ledger.begin(request.started, request.result);
  ledger.end(request.result);
  ledger.follow({ requested: [idOf(1)], withdrawn: [idOf(9)] });
  // The request and its withdrawal are left out of plans for a while, and come again.
  ledger.follow({ requested: [], withdrawn: [] });
  const ledgers = [ledger];
  for (const [n, jump] of [30 * day, 400 * day, -430 * day].entries()) {
    // While it does not run, and while it does.
    clock.stepWall(jump / 2);
    ledgers.push(again());
    clock.stepWall(jump / 2);
    const other = reports(20 + n);
    assert.equal(ledgers.at(-1)!.begin(other.started, other.result), true);
    ledgers.at(-1)!.end(other.result);
    assert.deepEqual(
      [1, 9].map((id) => ledgers.at(-1)!.wasStarted(idOf(id))),
      [true, true],
      String(jump),
    );
  }
  for (const one of ledgers) one.close();
});

test('NET-2.7.9: an id is kept for as long as plans name it, and seven days of the sensor’s own time besides', async (t) => {
  const { ledger, clock, again } = open(t);
  const request = reports(1, 'a', idOf(1));
  ledger.begin(request.started, request.result);
  ledger.end(request.result);
  ledger.follow({ requested: [idOf(1)], withdrawn: [idOf(9)] });
  await clock.advance(20 * day);
  ledger.begin(reports(2).started, reports(2).result);
  assert.deepEqual([ledger.wasStarted(idOf(1)), ledger.wasStarted(idOf(9))], [true, true]);
  ledger.close();
  const next = again();
  next.follow({ requested: [], withdrawn: [] });
  next.begin(reports(3).started, reports(3).result);
  assert.deepEqual([next.wasStarted(idOf(1)), next.wasStarted(idOf(9))], [false, false], 'its age was kept');
  next.close();
});

test('an attempt that was interrupted before the clock was set back is not reported from before its end', (t) => {
  const { ledger, clock, again } = open(t);
  const { started, result } = reports(1);
  ledger.begin(started, result);
  clock.stepWall(-3 * day);
  const next = again();
  next.removeReport(next.nextReport()!.id);
  assert.equal(JSON.parse(next.nextReport()!.body).at, at);
  for (const one of [ledger, next]) one.close();
});

test('the last start is that of the newest attempt, also where the clock was set back since', (t) => {
  const { ledger, clock } = open(t);
  const request = reports(1, 'a', idOf(1));
  ledger.begin(request.started, request.result);
  ledger.end(request.result);
  clock.stepWall(-3 * day);
  ledger.begin(reports(2, 'a').started, reports(2, 'a').result);
  assert.equal(ledger.lastStartedAtMs('a', 'common'), clock.nowMs());
  ledger.close();
});

test('NET-8.5: the tables hold 8,192 entries each: routine attempts make room first, then old requests, never those of the plan', (t) => {
  const { ledger, folder, again } = open(t);
  ledger.close();
  const file = new DatabaseSync(join(folder, 'scans.sqlite'));
  const insert = file.prepare(
    "INSERT INTO attempts (scan_id, request_id, target_id, profile, started_at_ms, ended_at_ms, body) VALUES (?, ?, 't', 'full', 0, 0, '')",
  );
  const withdraw = file.prepare('INSERT INTO withdrawn VALUES (?, 0)');
  file.exec('BEGIN');
  for (let n = 1; n <= 8192; n += 1) {
    insert.run(idOf(n), n === 8000 ? null : idOf(n));
    withdraw.run(idOf(10_000 + n));
  }
  file.exec('COMMIT');
  file.close();
  const next = again();
  next.follow({ requested: [idOf(1)], withdrawn: [idOf(10_001), idOf(20_001)] });
  for (const n of [9001, 9002]) assert.equal(next.begin(reports(n).started, reports(n).result), true);
  const isKnown = (...ids: number[]) => ids.map((id) => next.wasStarted(idOf(id)));
  assert.deepEqual(isKnown(8000, 1, 2, 3), [false, true, false, true]);
  assert.deepEqual(isKnown(10_001, 10_002, 10_003, 20_001), [true, false, true, true]);
  next.close();
});

test('a ledger of an older sensor, with wall times, goes on from its newest', (t) => {
  const { ledger, folder, clock, again } = open(t);
  const request = reports(1, 'a', idOf(1));
  ledger.begin(request.started, request.result);
  ledger.end(request.result);
  ledger.close();
  const file = new DatabaseSync(join(folder, 'scans.sqlite'));
  file.exec(`DROP TABLE age; UPDATE attempts SET ended_at_ms = ${clock.nowMs()}`);
  file.close();
  clock.stepWall(10 * day);
  const next = again();
  next.begin(reports(2).started, reports(2).result);
  assert.equal(next.wasStarted(idOf(1)), true);
  next.close();
});

test('NET-8.5: pending reports end new scans below 128 MiB, and the file ends at 160 MiB', (t) => {
  const { ledger, folder } = open(t);
  const mebibyte = 1024 * 1024;
  const pad = (count: number) => {
    const { started, result } = reports(1);
    ledger.begin(started, result);
    ledger.end({ ...result, padding: 'x'.repeat(count * mebibyte) } as never);
  };
  // Twelve scans of two MiB each may still end: new ones stop 24 MiB before.
  pad(103);
  assert.equal(ledger.hasRoom(), true);
  const store = new LedgerStore(join(folder, 'scans.sqlite'));
  store.insertReport(idOf(2), 'x'.repeat(2 * mebibyte));
  assert.equal(ledger.hasRoom(), false);
  store.insertReport(idOf(3), 'x'.repeat(50 * mebibyte));
  assert.throws(() => store.insertReport(idOf(4), 'x'.repeat(8 * mebibyte)), /full/);
  store.close();
  ledger.close();
  assert.ok(statSync(join(folder, 'scans.sqlite')).size <= 160 * mebibyte);
});

test('NET-8.5: the log keeps 4 MiB after it was larger', (t) => {
  const { ledger, folder } = open(t);
  const { started, result } = reports(1);
  ledger.begin(started, result);
  const path = join(folder, 'scans.sqlite-wal');
  ledger.note({ ...result, padding: 'x'.repeat(12 * 1024 * 1024) } as never);
  assert.ok(statSync(path).size > 4 * 1024 * 1024);
  for (let n = 0; n < 3; n += 1) ledger.note(result);
  assert.equal(statSync(path).size, 4 * 1024 * 1024);
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
