/**
 * Judges the minutes that visits are about to send, and keeps the verdicts, so that the sweep of the last 24 hours sends the
 * same again. A minute whose observations are others by now is judged again.
 */
import { parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import type { Incidents } from '#monitor/incidents/index.ts';
import type { AddressMinute, ObservedMinute, Traffic } from '#monitor/traffic/index.ts';
import { type DetectorReport, readDetectorReports } from '#monitor/views/detector-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  type Concern,
  concernsOf,
  expect,
  expectedSeconds,
  type JudgedMinute,
  judgeMinute,
} from './judge-minutes.ts';
import { readVerdicts, writeVerdicts } from './verdict-store.ts';

export interface JudgeDeps {
  db: () => Queryable;
  traffic: Pick<Traffic, 'readAddressesMinutes' | 'listSpeakers'>;
  incidents: Pick<Incidents, 'readAttackPeriods'>;
}

/** Minutes of an allocation generation, and what was observed in them. */
export interface RangeToJudge {
  /** The generation. */
  item: string;
  address: string;
  /** The first whole minute of the generation: minutes before it were another owner's. */
  assignedFrom: number;
  fromMinute: number;
  toMinute: number;
  minutes: readonly AddressMinute[];
}

type Judged = Omit<JudgedMinute, 'expectedBps' | 'expectedPps'>;
export type JudgedMinutes = ReadonlyMap<number, JudgedMinute>;

/** Judged minutes of each range, by minute; gaps have none. */
export async function judgeRanges(
  deps: JudgeDeps,
  siteId: number,
  ranges: readonly RangeToJudge[],
): Promise<JudgedMinutes[]> {
  const [stored, judged] = await Promise.all([
    readVerdicts(
      deps.db(),
      ranges.map((range) => ({ ...range, fromMinute: range.fromMinute - expectedSeconds })),
    ),
    judgeAlone(deps, siteId, ranges),
  ]);
  const before = await judgeBefore(deps, siteId, ranges, stored, judged);
  const fresh: (JudgedMinute & { item: string })[] = [];
  const verdicts = ranges.map((range, i) => {
    const known = new Map<number, Judged>();
    const keep = (one: Judged) => one.minute >= range.assignedFrom && known.set(one.minute, one);
    const held = new Map(stored[i]!.map((one) => [one.minute, one]));
    for (const one of [...before[i]!, ...stored[i]!, ...judged[i]!]) keep(one);
    const made = new Map<number, JudgedMinute>();
    for (const one of judged[i]!) {
      const same = held.get(one.minute);
      if (same?.input === one.input) {
        made.set(one.minute, same);
        continue;
      }
      const verdict = { ...one, ...expect(one.minute, known.values()) };
      made.set(one.minute, verdict);
      // What is unknown altogether is judged again: the detector's report may be on its way.
      const isKnown = verdict.ddosBytes !== null || verdict.expectedBps !== null;
      if (isKnown || same) fresh.push({ ...verdict, item: range.item });
    }
    return made;
  });
  await writeVerdicts(deps.db(), fresh);
  return verdicts;
}

/** The minutes of these ranges, each by itself. */
async function judgeAlone(
  deps: JudgeDeps,
  siteId: number,
  ranges: readonly RangeToJudge[],
): Promise<Judged[][]> {
  const observed = ranges.map(({ minutes }) => minutes.filter((one): one is ObservedMinute => !one.isGap));
  const asked = ranges.flatMap(({ address }, i) =>
    observed[i]!.map(({ minute, captureId }) => ({ address, minute, captureId })),
  );
  if (asked.length === 0) return ranges.map(() => []);
  const times = asked.map(({ minute }) => minute * 1000);
  const addresses = [...new Set(ranges.map(({ address }) => address))];
  const [reports, periods] = await Promise.all([
    readDetectorReports(deps.db(), siteId, asked, (attacked) => deps.traffic.listSpeakers(siteId, attacked)),
    deps.incidents.readAttackPeriods(siteId, addresses, Math.min(...times), Math.max(...times) + 60_000),
  ]);
  const concerns = new Map(
    addresses.map((address): [string, Concern[]] => [address, concernsOf(address, periods, isInPrefix)]),
  );
  let next = 0;
  return ranges.map(({ address }, i) =>
    observed[i]!.map((minute) =>
      judgeMinute(minute, reports[next++] as DetectorReport, concerns.get(address)!),
    ),
  );
}

/**
 * The thirty minutes before ranges whose verdicts begin with them: without these the first minutes after an outage would have
 * no expected traffic. Only where detectors report, or nothing could come of it.
 */
async function judgeBefore(
  deps: JudgeDeps,
  siteId: number,
  ranges: readonly RangeToJudge[],
  stored: readonly (readonly JudgedMinute[])[],
  judged: readonly (readonly Judged[])[],
): Promise<Judged[][]> {
  const wanted = ranges.flatMap((range, i) => {
    const { fromMinute, assignedFrom } = range;
    const hasNone = stored[i]!.every((one) => one.minute >= fromMinute);
    const isReported = judged[i]!.some((one) => one.ddosBytes !== null);
    if (!hasNone || !isReported || fromMinute <= assignedFrom) return [];
    const from = Math.max(assignedFrom, fromMinute - expectedSeconds);
    return [{ i, range: { ...range, fromMinute: from, toMinute: fromMinute } }];
  });
  const found: Judged[][] = ranges.map(() => []);
  if (wanted.length === 0) return found;
  const minutes = await deps.traffic.readAddressesMinutes(
    wanted.map(({ range: { address, fromMinute, toMinute } }) => ({ siteId, address, fromMinute, toMinute })),
  );
  const earlier = await judgeAlone(
    deps,
    siteId,
    wanted.map(({ range }, n) => ({ ...range, minutes: minutes[n]! })),
  );
  for (const [n, { i }] of wanted.entries()) found[i] = earlier[n]!;
  return found;
}

function isInPrefix(address: string, prefix: string): boolean {
  const bytes = parseAddress(address);
  const parsed = parsePrefix(prefix.includes('/') ? prefix : `${prefix}/${prefix.includes(':') ? 128 : 32}`);
  return bytes !== null && parsed !== null && prefixContains(parsed, bytes);
}
