import type { MinuteCollectorOptions } from './minute-collector.ts';

type CollectorSpool = MinuteCollectorOptions['spool'];

/** In the place of a spool where minutes are only looked at: nothing is kept, and nothing was before. */
export function createUnkeptMinutes(append: CollectorSpool['append'] = () => {}): CollectorSpool {
  return {
    append,
    isCovered: () => false,
    coveredBefore: () => null,
    lastCommit: () => null,
    lastStampedBy: () => null,
  };
}
