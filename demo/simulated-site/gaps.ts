/** Times at which a simulated sensor collected nothing, with the reason that it gives. On most days there is none. */
import { type GapReason, unobservedReasons } from '#contracts/minute-reasons.ts';
import { between, createDraw, pick } from './random.ts';

export interface PlannedGap {
  /** Seconds since 1970; the first minute, and the end, which is not of the gap. */
  fromMinute: number;
  endMinute: number;
  reason: GapReason;
}

const daySeconds = 86_400;
const share = 0.12;
const reasons: readonly GapReason[] = ['sensor_down', ...unobservedReasons];

/** The gap of a hypervisor on the UTC day that holds this minute, or null. It lies wholly within the day. */
export function gapOfDay(seed: number, hypervisor: number, minute: number): PlannedGap | null {
  const day = Math.floor(minute / daySeconds);
  const draw = createDraw(seed, 2, hypervisor, day);
  if (draw() >= share) return null;
  const minutes = between(draw, 5, 90);
  const fromMinute = day * daySeconds + between(draw, 0, 1440 - minutes) * 60;
  return { fromMinute, endMinute: fromMinute + minutes * 60, reason: pick(draw, reasons) };
}
