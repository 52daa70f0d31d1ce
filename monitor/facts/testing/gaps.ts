/** Gaps of minutes that were observed after all: every engine trims them like the rules in plain memory (NET-2.4.2). */
import assert from 'node:assert/strict';
import { nameApplication } from '#monitor/applications/index.ts';
import { captureMinute } from '#monitor/testing/index.ts';
import type { FactStore } from '../contract/fact-store.ts';
import type { FactUpload } from '../contract/facts.ts';
import type { StoreUnderTest } from './conformance.ts';
import { createMemoryFacts } from './memory/memory-facts.ts';
import { randomToken, seededBelow } from './random-uploads.ts';

export async function checkGaps(store: StoreUnderTest, nowSecond: number): Promise<void> {
  const { siteId } = store.origins[0]!;
  const model = createMemoryFacts({ nameApplication, nowSecond: () => nowSecond });
  const first = Math.floor(nowSecond / 60) * 60 - 3600;
  const random = seededBelow(Number(process.env.SVC_TEST_SEED ?? 5));
  const captures = ['uplink0', 'br0'];
  const reasons = ['sensor_down', 'capture_failed', 'storage_full', 'refused', 'clock_step'] as const;
  const upload = (): FactUpload => {
    const minutes = captures
      .filter(() => random(2) === 0)
      .map((capture) => ({
        ...captureMinute({ minute: first + 60 * random(20) }),
        capture,
        observedMs: random(4) === 0 ? 59_000 : 60_000,
      }));
    const from = random(20);
    const gap = {
      fromMinute: first + 60 * from,
      toMinute: first + 60 * (from + random(6)),
      capture: ['', ...captures][random(3)]!,
      reason: reasons[random(reasons.length)]!,
    };
    const token = randomToken(random);
    return { origin: store.origins[random(2)]!, token, minutes, gaps: random(3) === 0 ? [gap] : [] };
  };
  const gapsOf = async (facts: Pick<FactStore, 'listGaps'>) => {
    const gaps = await facts.listGaps({ siteId, fromMinute: first, toMinute: first + 3600 }, 1000);
    return gaps.map(({ sensorId, capture, fromMinute, toMinute, reason }) =>
      [sensorId, capture, fromMinute, toMinute, reason].join(' '),
    );
  };
  const trimmed = { sent: 0, left: 0 };
  for (let batch = 0; batch < 60; batch += 1) {
    const uploads = Array.from({ length: 1 + random(3) }, upload);
    trimmed.sent += uploads.reduce((sum, { gaps }) => sum + gaps.length, 0);
    await store.append(uploads);
    await model.append(uploads);
    const expected = await gapsOf(model);
    assert.deepEqual((await gapsOf(store.facts)).sort(), expected.sort(), `after batch ${batch}`);
    trimmed.left = expected.length;
  }
  assert.notEqual(trimmed.left, trimmed.sent, 'some gaps were trimmed');
}
