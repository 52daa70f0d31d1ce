/** Synthetic counters for an operator's drill: they are judged as traffic is, apart from it, and never counted. */
import type { AttackClass } from '#contracts/attack-classes.ts';
import type { AttackDirection } from '#contracts/incidents.ts';
import { Bin } from '#sensor/attack-counters/index.ts';
import { kindOfDrill } from './classify.ts';
import type { TargetSecond, TargetWindow } from './target-window.ts';
import type { DirectionThresholds } from './thresholds.ts';
import { emptyCounts } from './traffic.ts';
import { windowSeconds } from './trigger.ts';

export interface Drill {
  /** A canonical address. */
  target: string;
  direction: AttackDirection;
  class: AttackClass;
  pps: number;
  bps: number;
  startedAtMs: number;
  seconds: number;
}

/** The window of a drill up to a closed second, null when it has nothing in it. */
export function drillWindow(drill: Drill, unixSecond: number, thresholds: DirectionThresholds) {
  const first = Math.ceil(drill.startedAtMs / 1000);
  const last = first + drill.seconds - 1;
  if (unixSecond < first || unixSecond - windowSeconds + 1 > last) return null;
  const seconds = Array.from({ length: windowSeconds }, (_, i): TargetSecond => {
    const at = unixSecond - windowSeconds + 1 + i;
    const counts = at >= first && at <= last ? countsOf(drill) : emptyCounts();
    return { counts, opposite: emptyCounts() };
  });
  const { target, direction } = drill;
  const window: TargetWindow = {
    target: { kind: 'host', value: target },
    direction,
    thresholds,
    isDrill: true,
    seconds,
    detail: null,
  };
  return window;
}

function countsOf(drill: Drill): Float64Array {
  const counts = emptyCounts();
  const kind = kindOfDrill(drill.class);
  counts[Bin.packets + kind] = drill.pps;
  counts[Bin.bytes + kind] = drill.bps / 8;
  if (drill.class === 'connection_flood') counts[Bin.opened] = drill.pps;
  return counts;
}
