/** Why days of a month have no usage. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BandwidthHistory, BandwidthRow } from '#operations/bandwidth/index.ts';
import { dayMs, dayReasons } from './bandwidth.section.ts';

const month = { name: '2026-11', startMs: Date.UTC(2026, 10), endMs: Date.UTC(2026, 11) };
const day = (date: number, hour = 0) => Date.UTC(2026, 10, date, hour);

function rowOf(date: number, isMeasured: boolean): BandwidthRow {
  return {
    ...{ serverId: 1, serverName: 'web-1', inboundBytes: 0, outboundBytes: 0, poolBytes: 0, poolShare: 0 },
    ...{ ownScanInboundBytes: 0, ownScanOutboundBytes: 0, attackInboundBytes: 0, attackOutboundBytes: 0 },
    period: { name: '', startMs: day(date), endMs: day(date) + dayMs },
    lastSampledAt: isMeasured ? new Date(day(date)) : null,
    isDeleted: false,
  };
}

function told(
  createdMs: number,
  nowMs: number,
  measured: readonly number[],
  unmeasured: readonly number[] = [],
) {
  const history: BandwidthHistory = {
    granularity: 'day',
    current: { ...rowOf(1, true), period: month },
    rows: [...measured.map((date) => rowOf(date, true)), ...unmeasured.map((date) => rowOf(date, false))],
  };
  return dayReasons({ history, createdMs, nowMs }).map(({ fromMs, toMs, text, tone }) => {
    const at = (ms: number) => `${(ms - month.startMs) / dayMs + 1}`;
    return `${at(fromMs)} to ${at(toMs)} ${text}: ${tone}`;
  });
}

test('days before the server, days that were not measured, the running day and those to come each have their reason', () => {
  assert.deepEqual(told(day(3, 12), day(9, 6), [3, 4, 8, 9], [5]), [
    '1 to 3.5 before the server was created: neutral',
    '5 to 8 not measured: warn',
    '9 to 9.25 day in progress: neutral',
    '9.25 to 31 not yet: neutral',
  ]);
});

test('a month that was measured to its end has nothing to say; a server of this minute has no day yet', () => {
  const all = Array.from({ length: 30 }, (_, i) => i + 1);
  assert.deepEqual(told(day(1) - dayMs, month.endMs, all), []);
  assert.deepEqual(told(day(9, 6), day(9, 6), []), [
    '1 to 9.25 before the server was created: neutral',
    '9.25 to 31 not yet: neutral',
  ]);
});
