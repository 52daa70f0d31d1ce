/** An address's minutes as points of a chart: minutes for one day, coarser steps for longer ranges. */
import type { AddressMinute } from '#monitor/traffic/index.ts';
import type { Range } from '#service-kit/pages/index.ts';

/** One step. Rates are means over its observed minutes; null without one. */
export interface AddressPoint {
  timeMs: number;
  inBps: number | null;
  outBps: number | null;
  inBytes: number;
  outBytes: number;
  /** The part of these bytes that the sensors' own port scans caused. */
  ownScan: { inBytes: number; outBytes: number };
  /** Null when offload merged an unknown number of packets. */
  packets: number | null;
  observed: number;
  /** Minutes that were not observed; zero for a step in progress. */
  gaps: number;
  /** The lowest of its minutes; null when one is unknown. */
  coverage: number | null;
}

/** A minute that ended more recently may still arrive. */
const arrivesWithinMs = 90_000;

/** The steps of a range up to now. Future minutes and minutes that may still arrive are not gaps. */
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
      ownScan: { inBytes: 0, outBytes: 0 },
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
  point.ownScan.inBytes += minute.ownScan?.rxBytes ?? 0;
  point.ownScan.outBytes += minute.ownScan?.txBytes ?? 0;
  point.packets = point.packets === null || minute.packets === null ? null : point.packets + minute.packets;
  point.coverage =
    point.coverage === null || minute.coverage === null ? null : Math.min(point.coverage, minute.coverage);
}
