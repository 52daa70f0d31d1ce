import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canTrace } from '#sensor/testing/can-trace.ts';
import { killLedger } from './ledger-kills.prove.ts';

const cases = Number(process.env.SVC_TEST_KILLS ?? 2);

test(`NET-2.7.3, NET-2.7.9: scans killed at ${cases} system calls, and again in the recovery: each id runs once, and is reported once with all that was stored`, async (t) => {
  if (!canTrace(t)) return;
  const { offences, kills } = await killLedger({ n: cases, seed: 3, report: () => {} }, null);
  assert.deepEqual(offences, []);
  assert.ok(kills > 0, 'no life died at its call');
});
