/**
 * What the visits of a tick are about to send, read with few statements for all of them: one allocation by itself costs
 * several, and planning them takes longer than reading its rows.
 */
import type { AddressApplication, Applications } from '#monitor/applications/index.ts';
import type { AddressMinute, Traffic } from '#monitor/traffic/index.ts';

export interface ReadAheadDeps {
  traffic: Pick<Traffic, 'readAddressesMinutes'>;
  applications: Pick<Applications, 'readAddressesApplications'>;
}

/** Minutes of an address from one (inclusive) to another (exclusive), seconds since 1970. */
export interface VisitRange {
  address: string;
  fromMinute: number;
  toMinute: number;
}

export interface RangeContent {
  minutes: AddressMinute[];
  applications: AddressApplication[];
}

export type ReadRange = (range: VisitRange) => Promise<RangeContent>;

/** Application rows that are held at a time; where there are more, each range is read when it is needed. */
const rowsMax = 60_000;

/** Reads these ranges of a site at once; the reader that it returns reads any other one when it is asked for. */
export async function readAhead(
  deps: ReadAheadDeps,
  siteId: number,
  ranges: readonly VisitRange[],
): Promise<ReadRange> {
  const ahead = new Map<string, RangeContent>();
  const all = await readRanges(deps, siteId, ranges, rowsMax);
  for (const [i, range] of ranges.entries()) if (all) ahead.set(keyOf(range), all[i]!);
  return async (range) =>
    ahead.get(keyOf(range)) ?? (await readRanges(deps, siteId, [range], Number.MAX_SAFE_INTEGER - 1))![0]!;
}

const keyOf = ({ address, fromMinute, toMinute }: VisitRange) => `${address} ${fromMinute} ${toMinute}`;

async function readRanges(
  { traffic, applications }: ReadAheadDeps,
  siteId: number,
  ranges: readonly VisitRange[],
  applicationsMax: number,
): Promise<RangeContent[] | null> {
  const asked = ranges.map((range) => ({ siteId, ...range }));
  const [minutes, used] = await Promise.all([
    traffic.readAddressesMinutes(asked),
    applications.readAddressesApplications(asked, applicationsMax),
  ]);
  return used && ranges.map((_, i) => ({ minutes: minutes[i]!, applications: used[i]! }));
}
