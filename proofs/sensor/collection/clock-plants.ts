/** Faults to plant into the lives of `clock-history.ts`. */
import type { Spool } from '#sensor/spool/index.ts';
import { changeOldest } from '../spool/planted-faults.ts';

/** Faults of a sensor or monitor. */
export const clockPlants = [
  'covers_the_future',
  'drops_stepped_minutes',
  'doubles_on_a_step_back',
  'never_stamps_again',
  'throws_away_what_is_ahead',
  'sends_moved_ones_twice',
  'keeps_contradicted_gaps',
  'drops_whole_gaps',
] as const;
export type ClockPlant = (typeof clockPlants)[number];

/** A spool with a fault. */
export function plantIn(spool: Spool, plant: ClockPlant | null): Spool {
  switch (plant) {
    case 'covers_the_future':
      return {
        ...spool,
        append(minutes, gaps, extras) {
          const last = spool.lastStampedBy();
          const since = extras?.stampedBy?.since ?? 0;
          const isJump = last !== null && minutes.length > 0 && since > last.throughMinute + 60;
          const jumped = { fromMinute: (last?.throughMinute ?? 0) + 60, toMinute: since - 60, capture: '' };
          spool.append(minutes, isJump ? [...gaps, { ...jumped, reason: 'clock_step' }] : gaps, extras);
        },
      };
    case 'drops_stepped_minutes':
      return {
        ...spool,
        append: (minutes, gaps, extras) =>
          spool.append(
            minutes.filter((one) => !spool.isCovered(one.minute)),
            gaps,
            extras,
          ),
      };
    case 'doubles_on_a_step_back':
      return { ...spool, settle: () => false };
    case 'never_stamps_again':
      return { ...spool, restamp: () => false };
    case 'sends_moved_ones_twice':
      return {
        ...spool,
        ...changeOldest(spool, (upload) => ({ ...upload, mayBeSent: false })),
      };
    default:
      return spool;
  }
}
