import type { AddressRange, FactStore } from '#monitor/facts/index.ts';
import { type AddressMinute, joinMinutes } from './address-minute.ts';

/** An exact address's minutes in order, one entry for each of the range. */
export async function readAddressMinutes(
  facts: Pick<FactStore, 'readAddress'>,
  range: AddressRange,
): Promise<AddressMinute[]> {
  const { seen, ...known } = await facts.readAddress(range);
  const capturesSeen = new Map<number, number[]>();
  for (const { minute, captureId } of seen) {
    const captures = capturesSeen.get(minute);
    if (captures) captures.push(captureId);
    else capturesSeen.set(minute, [captureId]);
  }
  return joinMinutes({ ...range, ...known, capturesSeen });
}
