/**
 * Crashes between every two steps of an append. Uploads are appended up to a step and then once more, as the inbox does with
 * an upload that it has not marked; the answers are those of one append. The second time they come in other batches, and now
 * and then a third time, as after a mark that was lost.
 */
import type { FactUpload } from '../contract/facts.ts';
import {
  type ConformanceOptions,
  compareAnswers,
  type StoreUnderTest,
  sampleMinutes,
} from './conformance.ts';
import { type Random, randomUpload, seededBelow } from './random-uploads.ts';

const uploadsOfPoint = 4;

/** Goes through the steps until the answers differ or an append has no more steps; returns the differences and the steps. */
export async function checkCrashPoints(
  store: StoreUnderTest,
  options: Omit<ConformanceOptions, 'uploads'> & {
    /** Answers are compared after every so many steps, and after the last: what went wrong in between stays wrong. */
    compareEvery?: number;
  },
): Promise<{ offences: string[]; steps: number }> {
  const random = seededBelow(options.seed);
  const minutes = sampleMinutes(options.nowSecond);
  for (let step = 0; ; step += 1) {
    const uploads = Array.from({ length: uploadsOfPoint }, () => makeUpload(random, store, minutes));
    const isWhole = await store.append(uploads, step);
    for (const again of [uploads.slice(0, 1), uploads.slice(1)]) await store.append(again);
    if (step % 3 === 0) await store.append(uploads);
    await options.model.append(uploads);
    await store.facts.rollUp(isWhole ? 'all' : 'settled');
    if (!isWhole && (step + 1) % (options.compareEvery ?? 1) > 0) continue;
    const stage = `crash after step ${step}`;
    const offences = await compareAnswers(store, { ...options, random, minutes, stage });
    if (isWhole || offences.length > 0) return { offences, steps: step };
  }
}

/** Also with gaps that whole minutes are removed from. */
function makeUpload(random: Random, store: StoreUnderTest, minutes: readonly number[]): FactUpload {
  const upload = randomUpload(random, { origins: store.origins, minutes });
  if (random(2) === 0) return upload;
  const fromMinute = minutes[random(minutes.length)]!;
  const gap = { fromMinute, toMinute: fromMinute + 60 * random(5), capture: ['', 'eth0'][random(2)]! };
  return { ...upload, gaps: [{ ...gap, reason: 'sensor_down' as const }] };
}
