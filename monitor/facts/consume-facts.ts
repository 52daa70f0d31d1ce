/** Minutes and gaps of uploads on their way into the fact store. */
import { describeError, hasCode } from '#common/errors/index.ts';
import { aheadSecondsMax } from '#contracts/sensor-api/http.ts';
import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
import { ConsumerAway, keptSeconds, type UploadConsumer } from '#monitor/intake/index.ts';
import { openScope } from './contract/control-scope.ts';
import type { FactStore } from './contract/fact-store.ts';
import type { FactUpload } from './contract/facts.ts';

/** Takes `minutes` and `gaps`. A skipped upload becomes a gap over its minutes, so that they never read as zero. */
export function createFactConsumer(
  facts: Pick<FactStore, 'prepare' | 'append' | 'rollUp'>,
): UploadConsumer<FactUpload> {
  return {
    kind: 'facts',
    times: ({ minutes, gaps }) => ({
      observed: minutes.map(({ minute }) => minute),
      mentioned: gaps.map(({ toMinute }) => toMinute),
    }),
    select({ siteId, sensorId, nowMs, upload: { spoolId, sequence, minutes, gaps } }) {
      // Of an upload with some older minutes the others count.
      const kept = minutes.filter(({ minute }) => minute > nowMs / 1000 - keptSeconds);
      if (kept.length + gaps.length === 0) return null;
      const origin = { siteId, sensorId };
      return { origin, token: { spoolId, sequence }, minutes: kept, gaps: withoutFuture(gaps, nowMs) };
    },
    prepare: (uploads) =>
      facts.prepare([...new Set(uploads.flatMap(({ minutes }) => minutes.map(({ minute }) => minute)))]),
    apply: (trx, uploads) => excused(() => facts.append(uploads, openScope(trx))),
    async skip(trx, { siteId, sensorId, spoolId, sequence, firstMinute, lastMinute }) {
      if (firstMinute === null || lastMinute === null) return;
      const gap = { capture: '', fromMinute: firstMinute, toMinute: lastMinute, reason: 'rejected' as const };
      const token = { spoolId, sequence };
      const skipped = { origin: { siteId, sensorId }, token, minutes: [], gaps: [gap] };
      await excused(() => facts.append([skipped], openScope(trx)));
    },
    followUp: () => facts.rollUp('none'),
  };
}

/** An engine that does not answer, or that no longer holds the facts, says nothing of the uploads: they wait. */
async function excused(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (hasCode(error, 'facts.unavailable') || hasCode(error, 'facts.moved'))
      throw new ConsumerAway(describeError(error), error);
    throw error;
  }
}

/** No sensor can know that it will miss a time that has not come, so gaps end now. */
function withoutFuture(gaps: readonly TelemetryGap[], nowMs: number): TelemetryGap[] {
  const lastMinute = Math.floor((nowMs / 1000 + aheadSecondsMax) / 60) * 60;
  return gaps
    .filter((gap) => gap.fromMinute <= lastMinute)
    .map((gap) => ({ ...gap, toMinute: Math.min(gap.toMinute, lastMinute) }));
}
