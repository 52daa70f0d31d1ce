/** Minutes in which no address had traffic: every engine leaves their steps out, like the rules in plain memory (NET-2.2.10). */
import assert from 'node:assert/strict';
import { nameApplication } from '#monitor/applications/index.ts';
import { captureMinute, host } from '#monitor/testing/index.ts';
import type { Exploration } from '../contract/exploration.ts';
import type { FactStore } from '../contract/fact-store.ts';
import type { StoreUnderTest } from './conformance.ts';
import { createMemoryFacts } from './memory/memory-facts.ts';
import { randomToken, seededBelow } from './random-uploads.ts';

export async function checkQuietSteps(store: StoreUnderTest, nowSecond: number): Promise<void> {
  const { siteId } = store.origins[0]!;
  const model = createMemoryFacts({ nameApplication, nowSecond: () => nowSecond });
  const firstHour = Math.floor(nowSecond / 7200) * 7200 - 12 * 3600;
  // Traffic in the first two of eight hours and in the last one; captures listened in all.
  const busy = new Set([0, 1, 7]);
  const minutes = Array.from({ length: 8 }, (_, hour) =>
    captureMinute({
      minute: firstHour + 3600 * hour + 600,
      hosts: busy.has(hour) ? [host('192.0.2.10', 500, 50)] : [],
    }),
  );
  const token = randomToken(seededBelow(3));
  const upload = { origin: store.origins[0]!, token, minutes, gaps: [] };
  await model.append([upload]);
  await store.append([upload]);
  const stepsOf = async (facts: FactStore, by: Exploration['by'], stepSeconds: number) => {
    const { steps } = await facts.explore({
      ...{ siteId, fromMinute: firstHour, toMinute: firstHour + 8 * 3600 },
      ...{ source: 'addresses', filters: [], by, owners: [], networks: [], stepSeconds },
      ...{ measure: 'bytes', order: 'size', rows: { limit: 5 } },
    });
    return steps.filter(({ row }) => row === null).map(({ timeMs }) => (timeMs / 1000 - firstHour) / 3600);
  };
  for (const hours of ['settled', 'all'] as const) {
    // A site's own minutes are made by either.
    await store.facts.rollUp(hours);
    for (const by of [[], ['address'], ['server']] as const)
      for (const [stepSeconds, expected] of [
        [600, [0, 1, 7].map((hour) => hour + 1 / 6)],
        [3600, [0, 1, 7]],
        [7200, [0, 6]],
      ] as const) {
        const question = `by ${by}, step ${stepSeconds}, ${hours} rolled up`;
        const told = await stepsOf(model, [...by], stepSeconds);
        assert.deepEqual(told, expected, `memory, ${question}`);
        assert.deepEqual(await stepsOf(store.facts, [...by], stepSeconds), told, question);
      }
  }
}
