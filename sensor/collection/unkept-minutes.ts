import type { MinuteCollectorOptions } from './minute-collector.ts';

type CollectorSpool = MinuteCollectorOptions['spool'];

/** Replaces the spool when minutes are only displayed: it stores nothing and covers nothing. */
export function createUnkeptMinutes(append: CollectorSpool['append'] = () => {}): CollectorSpool {
  return {
    append,
    coveredBefore: () => null,
    lastCommit: () => null,
    lastStampedBy: () => null,
  };
}
