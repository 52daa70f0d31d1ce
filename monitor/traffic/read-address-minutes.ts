import type { AddressRange, FactStore } from '#monitor/facts/index.ts';
import { type AddressMinute, type DeliveredMinutes, joinMinutes } from './address-minute.ts';

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
