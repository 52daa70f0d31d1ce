import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SensorStatus } from '#sensor/local-status/index.ts';
import { findRunning } from './check.ts';

const status: SensorStatus = {
  ...{ version: '0.1.24', monitor: 'http://127.0.0.1:8090', site: 'Test site', startedAtMs: 0, captures: [] },
  spool: { pendingUploads: 3, pendingBytes: 12_000, roomMinutes: 600 },
  live: { isAnnounced: true, posted: 9, dropped: 1, waiting: 0 },
  incidents: [],
};
const evidence = {
  ...{ takesEvidence: true, recording: 0, waitingFiles: 0, waitingBytes: 0, dropped: 0, why: null },
};
const said = (part: Partial<SensorStatus>) =>
  findRunning({ ...status, ...part }).map(({ state, text }) => `${state}: ${text}`);

test('check says how many uploads and capture files of attacks wait, and why', () => {
  assert.equal(said({}).length, 1, 'an older sensor says nothing of capture files');
  assert.match(
    said({})[0]!,
    /^ok: Version 0\.1\.24 since .* 3 uploads wait; the spool has room for 10\.0 hours/,
  );
  const last = (part: object) => said({ evidence: { ...evidence, ...part } }).at(-1);
  assert.equal(last({}), 'ok: 0 capture files of attacks wait.');
  assert.equal(
    last({ waitingFiles: 2, waitingBytes: 3 * 1024 * 1024, recording: 1 }),
    'ok: 2 capture files of attacks wait (3.0 MiB), 1 is recorded.',
  );
  assert.equal(last({ takesEvidence: false }), 'info: The monitor takes no capture files of attacks.');
  assert.match(
    last({ waitingFiles: 1, why: 'no answer' })!,
    /^warn: .* do not reach the monitor: no answer$/,
  );
  assert.match(last({ waitingFiles: 64, dropped: 2 })!, /^warn: .* 2 were dropped since the start/);
});

test('check says nothing of the running sensor where there is none', () => {
  assert.deepEqual(
    findRunning(null).map(({ state }) => state),
    ['info'],
  );
});
