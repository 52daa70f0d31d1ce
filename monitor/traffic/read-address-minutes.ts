import type { AddressRange, FactStore } from '#monitor/facts/index.ts';
import { type AddressMinute, joinMinutes } from './address-minute.ts';

/** An exact address's minutes in order, one entry for each of the range. */
export async function readAddressMinutes(
  facts: Pick<FactStore, 'readAddress'>,
  range: AddressRange,
  listSetAside: ((range: AddressRange) => Promise<number[]>) | null = null,
): Promise<AddressMinute[]> {
  const [{ seen, ...known }, setAside] = await Promise.all([
    facts.readAddress(range),
    listSetAside ? listSetAside(range) : [],
  ]);
  const capturesSeen = new Map<number, number[]>();
  for (const { minute, captureId } of seen) {
    const captures = capturesSeen.get(minute);
    if (captures) captures.push(captureId);
    else capturesSeen.set(minute, [captureId]);
  }
  const minutes = joinMinutes({ ...range, ...known, capturesSeen });
  return setAside.length > 0 ? withoutSetAside(minutes, new Set(setAside), capturesSeen) : minutes;
}

/** Where counters of the address were left out, what remains is not all of it; where nothing remains, nothing is known. */
function withoutSetAside(
  minutes: readonly AddressMinute[],
  setAside: ReadonlySet<number>,
  seen: ReadonlyMap<number, unknown>,
): AddressMinute[] {
  return minutes.map((entry) => {
    if (entry.isGap || !setAside.has(entry.minute)) return entry;
    return seen.has(entry.minute) ? { ...entry, coverage: null } : { isGap: true, minute: entry.minute };
  });
}
