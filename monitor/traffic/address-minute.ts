import type { MinuteLoss } from '#contracts/minute-reasons.ts';
import type { AddressRange, CaptureGap, FactStore, Listening, Sighting } from '#monitor/facts/index.ts';

/** Traffic of an exact address in a minute, or a gap. */
export type AddressMinute = ObservedMinute | { isGap: true; minute: number; loss: MinuteLoss | null };

/** Start of the newest minute that each listening capture has delivered, by the capture's id. */
export type DeliveredMinutes = ReadonlyMap<number, number>;

export interface ObservedMinute extends Omit<Sighting, 'observedMs' | 'coverage'> {
  isGap: false;
  /**
   * Part of the minute that the chosen capture listened (NET-2.4.3), below 1 for a partial one. Null: the parser lost
   * packets, no single capture has both directional maxima, or a gap has an unknown size.
   */
  coverage: number | null;
  /** Why it is not a full minute, where that is known. */
  loss: MinuteLoss | null;
}

/** A minute of which less was heard lost packets; below this, clocks and rounding. */
const fullCoverage = 0.995;

/**
 * Assembles an address's minutes: observed traffic, zeros where the capture that last saw the address listened, and
 * gaps elsewhere.
 *
 * A missing address counts as zero only at a capture that is known to see it: another host's sensor proves nothing.
 * Before the first sighting every minute is a gap.
 */
export function joinMinutes(input: {
  fromMinute: number;
  toMinute: number;
  /** Captures that saw the address last before `fromMinute`. */
  knownCaptures: readonly number[];
  sightings: readonly Sighting[];
  /** All captures that saw the address, by minute. */
  capturesSeen: ReadonlyMap<number, readonly number[]>;
  listening: readonly Listening[];
  gaps: readonly CaptureGap[];
  delivered: DeliveredMinutes;
}): AddressMinute[] {
  const sightings = new Map(input.sightings.map((sighting) => [sighting.minute, sighting]));
  const listening = new Map<number, Listening[]>();
  for (const entry of input.listening) {
    const entries = listening.get(entry.minute);
    if (entries) entries.push(entry);
    else listening.set(entry.minute, [entry]);
  }
  const findGap = (captureIds: readonly number[], minute: number) =>
    input.gaps.find(
      (gap) => captureIds.includes(gap.captureId) && gap.fromMinute <= minute && minute <= gap.toMinute,
    );
  const isAwaited = (captureIds: readonly number[], minute: number) =>
    captureIds.some((id) => (input.delivered.get(id) ?? minute) < minute);
  const whyGap = (captureIds: readonly number[], minute: number): MinuteLoss | null =>
    findGap(captureIds, minute)?.reason ?? (isAwaited(captureIds, minute) ? 'not_finished' : null);
  const judge = (at: Pick<Listening, 'captureId' | 'minute' | 'observedMs' | 'coverage'>) => {
    const gap = findGap([at.captureId], at.minute);
    const isWhole = at.observedMs >= 60_000;
    const hasLost = isWhole && at.coverage !== null && at.coverage < fullCoverage;
    return {
      // A gap row without a duration says that data is missing, not how much.
      coverage: isWhole && gap ? null : at.coverage,
      loss: gap?.reason ?? (hasLost ? ('packets_lost' as const) : null),
    };
  };

  const minutes: AddressMinute[] = [];
  let known = input.knownCaptures;
  for (let minute = input.fromMinute; minute < input.toMinute; minute += 60) {
    const seen = sightings.get(minute);
    if (seen) {
      known = input.capturesSeen.get(minute) ?? [seen.captureId];
      const { captureId, rxBytes, txBytes, packets, ownScan, dropped } = seen;
      minutes.push({
        isGap: false,
        minute,
        captureId,
        rxBytes,
        txBytes,
        packets,
        ...(ownScan && { ownScan }),
        ...(dropped && { dropped }),
        ...judge(seen),
      });
      continue;
    }
    const silent = (listening.get(minute) ?? [])
      .filter((entry) => known.includes(entry.captureId))
      .sort((a, b) => b.observedMs - a.observedMs)[0];
    minutes.push(
      silent
        ? {
            isGap: false,
            minute,
            captureId: silent.captureId,
            rxBytes: 0,
            txBytes: 0,
            packets: 0,
            ...judge(silent),
          }
        : { isGap: true, minute, loss: whyGap(known, minute) },
    );
  }
  return minutes;
}

/** Minutes of exact addresses, one entry for each range, in the order of the ranges. */
export async function readAddressesMinutes(
  facts: Pick<FactStore, 'readAddresses'>,
  ranges: readonly AddressRange[],
  listSetAside: ((ranges: readonly AddressRange[]) => Promise<number[][]>) | null = null,
  delivered: DeliveredMinutes = new Map(),
): Promise<AddressMinute[][]> {
  const [found, setAside] = await Promise.all([
    facts.readAddresses(ranges),
    listSetAside ? listSetAside(ranges) : ranges.map(() => []),
  ]);
  return ranges.map((range, i) => {
    const { seen, ...known } = found[i]!;
    const capturesSeen = new Map<number, number[]>();
    for (const { minute, captureId } of seen) {
      const captures = capturesSeen.get(minute);
      if (captures) captures.push(captureId);
      else capturesSeen.set(minute, [captureId]);
    }
    const minutes = joinMinutes({ ...range, ...known, capturesSeen, delivered });
    const aside = setAside[i]!;
    return aside.length > 0 ? withoutSetAside(minutes, new Set(aside), capturesSeen) : minutes;
  });
}

/** Where counters of the address were left out, the rest is incomplete; without a rest the minute is a gap. */
function withoutSetAside(
  minutes: readonly AddressMinute[],
  setAside: ReadonlySet<number>,
  seen: ReadonlyMap<number, unknown>,
): AddressMinute[] {
  return minutes.map((entry) => {
    if (entry.isGap || !setAside.has(entry.minute)) return entry;
    return seen.has(entry.minute)
      ? { ...entry, coverage: null, loss: entry.loss ?? 'rejected' }
      : { isGap: true, minute: entry.minute, loss: entry.loss ?? 'rejected' };
  });
}
