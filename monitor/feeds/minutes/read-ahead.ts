/**
 * What the visits of a tick are about to send, read with few statements for all of them: one allocation by itself costs
 * several, and planning them takes longer than reading its rows.
 */
import type { Applications } from '#monitor/applications/index.ts';
import type { AddressApplication } from '#monitor/facts/index.ts';
import type { AddressMinute, DeliveredMinutes } from '#monitor/traffic/index.ts';
import { isConnectionFailure } from '#service-kit/postgres/index.ts';
import { type JudgeDeps, type JudgedMinutes, judgeRanges, type RangeToJudge } from './judge-ranges.ts';

interface ReadAheadDeps extends JudgeDeps {
  applications: Pick<Applications, 'readAddressesApplications'>;
}

/** Minutes of an allocation's address from one (inclusive) to another (exclusive), seconds since 1970. */
export interface VisitRange extends Omit<RangeToJudge, 'minutes'> {
  /** Where this range holds nothing, the visit reads the next one, up to this minute. */
  readsOnUntil?: number;
}

export interface RangeContent {
  minutes: AddressMinute[];
  applications: AddressApplication[];
  verdicts: JudgedMinutes;
}

export type ReadRange = (range: VisitRange) => Promise<RangeContent>;

/** Application rows that are held at a time; where there are more, each range is read when it is needed. */
const rowsMax = 60_000;

/**
 * Reads these ranges of a site at once, and those that the visits read instead of empty ones; the reader that it returns reads any
 * other one when it is asked for.
 */
export async function readAhead(
  deps: ReadAheadDeps,
  siteId: number,
  {
    ranges,
    nextOf,
  }: { ranges: readonly VisitRange[]; nextOf(range: VisitRange, content: RangeContent): VisitRange | null },
  delivered: DeliveredMinutes,
): Promise<ReadRange> {
  const ahead = new Map<string, RangeContent>();
  for (let wanted = ranges; wanted.length > 0; ) {
    const all = await readRanges(deps, siteId, wanted, delivered, rowsMax).catch((error) => {
      if (isConnectionFailure(error)) throw error;
      // One of them can't be read. Each by itself, the others can.
      return null;
    });
    if (!all) break;
    for (const [i, range] of wanted.entries()) ahead.set(keyOf(range), all[i]!);
    wanted = wanted.flatMap((range, i) => nextOf(range, all[i]!) ?? []);
  }
  return async (range) =>
    ahead.get(keyOf(range)) ??
    (await readRanges(deps, siteId, [range], delivered, Number.MAX_SAFE_INTEGER - 1))![0]!;
}

const keyOf = ({ item, fromMinute, toMinute }: VisitRange) => `${item} ${fromMinute} ${toMinute}`;

async function readRanges(
  deps: ReadAheadDeps,
  siteId: number,
  ranges: readonly VisitRange[],
  delivered: DeliveredMinutes,
  applicationsMax: number,
): Promise<RangeContent[] | null> {
  const { traffic, applications } = deps;
  const asked = ranges.map(({ address, fromMinute, toMinute }) => ({
    siteId,
    address,
    fromMinute,
    toMinute,
  }));
  const [minutes, used] = await Promise.all([
    traffic.readAddressesMinutes(asked, delivered),
    applications.readAddressesApplications(asked, applicationsMax),
  ]);
  if (!used) return null;
  const verdicts = await judgeRanges(
    deps,
    siteId,
    ranges.map((range, i) => ({ ...range, minutes: minutes[i]! })),
  );
  return ranges.map((_, i) => ({ minutes: minutes[i]!, applications: used[i]!, verdicts: verdicts[i]! }));
}
