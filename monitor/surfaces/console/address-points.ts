/** An address's minutes as points of a chart: minutes of a day, coarser steps of more. */
import type { AddressMinute } from '#monitor/traffic/index.ts';
import type { Range } from '#service-kit/pages/index.ts';

/** One step. Rates are means over its observed minutes; null where none was. */
export interface AddressPoint {
  timeMs: number;
  inBps: number | null;
  outBps: number | null;
  inBytes: number;
  outBytes: number;
  /** Null where offload merged packets that nobody could count. */
  packets: number | null;
  observed: number;
  /** Minutes that were not observed; none of a step that is in progress. */
  gaps: number;
  /** Least of its minutes; null where one is not known. */
  coverage: number | null;
}

/** A minute that ended less than this ago may still be on its way. */
const arrivesWithinMs = 90_000;

/** The steps of a range up to now: what has not been yet, or not arrived yet, is no gap. */
export function pointsOf(minutes: readonly AddressMinute[], range: Range, nowMs: number): AddressPoint[] {
  const stepMs = range.stepSeconds * 1000;
  const points = new Map<number, AddressPoint>();
  for (let timeMs = range.fromMs; timeMs < Math.min(range.toMs, nowMs); timeMs += stepMs) {
    points.set(timeMs, {
      timeMs,
      inBps: null,
      outBps: null,
      inBytes: 0,
      outBytes: 0,
      packets: 0,
      observed: 0,
      gaps: 0,
      coverage: 1,
    });
  }
  for (const minute of minutes) {
    const point = points.get(Math.floor((minute.minute * 1000) / stepMs) * stepMs);
    if (point) addMinute(point, minute, (minute.minute + 60) * 1000 + arrivesWithinMs > nowMs);
  }
  for (const point of points.values()) {
    if (point.observed === 0) continue;
    point.inBps = (point.inBytes * 8) / (point.observed * 60);
    point.outBps = (point.outBytes * 8) / (point.observed * 60);
  }
  return [...points.values()];
}

function addMinute(point: AddressPoint, minute: AddressMinute, mayArrive: boolean): void {
  if (minute.isGap) {
    if (!mayArrive) point.gaps += 1;
    return;
  }
  point.observed += 1;
  point.inBytes += minute.rxBytes;
  point.outBytes += minute.txBytes;
  point.packets = point.packets === null || minute.packets === null ? null : point.packets + minute.packets;
  point.coverage =
    point.coverage === null || minute.coverage === null ? null : Math.min(point.coverage, minute.coverage);
}
