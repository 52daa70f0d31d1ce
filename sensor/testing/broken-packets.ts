/** Broken packets into captures of every link type, for tests that count what becomes of them and what they cost. */
import { seededRandom } from '#common/random/index.ts';
import type { Capture } from '#sensor/capture/index.ts';
import { testCapture, testMinute } from './captures.ts';
import { generatedSeeds, mutate } from './mutations.ts';

/** Yields the observation of one packet after the other; returns the captures. */
export function* observeBroken({
  count,
  seed,
}: {
  count: number;
  seed: number;
}): Generator<() => void, Capture[]> {
  const random = seededRandom(seed);
  const seeds = generatedSeeds();
  const captures = new Map<number, Capture>();
  for (let i = 0; i < count; i += 1) {
    const { bytes, linkType } = mutate(seeds, random);
    const capture = captures.get(linkType) ?? testCapture({ role: 'bridge', linkType, flowsMax: 4096 });
    captures.set(linkType, capture);
    const second = testMinute + Math.floor(i / 500);
    yield () => capture.observe(bytes, 0, bytes.length, bytes.length, second, 0, -1);
  }
  return [...captures.values()];
}
