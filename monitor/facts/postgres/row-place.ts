/** What all rows of a capture's minute have in common. */
export interface RowPlace {
  siteId: number;
  captureId: number;
  minuteMs: number;
  vantage: number;
  isForeign(address: string | null): boolean;
  segmentOf(address: string | null): string;
}
