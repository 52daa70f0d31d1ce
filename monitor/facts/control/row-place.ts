import type { ForeignCheck } from '#monitor/placements/index.ts';
import { vantageCode } from '../contract/codes.ts';
import { segmentsOf } from '../contract/segments.ts';
import type { OriginMinute } from './capture-store.ts';

/** What all rows of a capture's minute have in common. */
export interface RowPlace {
  siteId: number;
  captureId: number;
  minuteMs: number;
  vantage: number;
  isForeign(address: string | null): boolean;
  segmentOf(address: string | null): string;
}

/** The place of a capture's minute, with who may speak for its addresses. */
export function placeOf(
  { siteId, sensorId, captureId, minute }: OriginMinute,
  check: ForeignCheck,
): RowPlace {
  const segmentOf = segmentsOf(minute);
  return {
    siteId,
    captureId,
    minuteMs: minute.minute * 1000,
    vantage: vantageCode(minute.role),
    segmentOf,
    isForeign(address) {
      if (address === null) return false;
      const segment = segmentOf(address);
      const segments = segment === '' ? undefined : [segment, minute.capture];
      return check(sensorId, address, minute.minute, segments);
    },
  };
}
