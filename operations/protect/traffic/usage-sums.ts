/** Arithmetic of the sums of addresses: a range beside the time before, and what several of them are together. */
import type { Amount } from '#service-kit/explorer/index.ts';
import type { AddressSum } from './explorer-store.ts';
import type { Opened } from './opened.ts';

/** Of several addresses together it names the first. */
export interface UsageSum extends Omit<AddressSum, 'allocationId'> {
  /** The same of the time before. */
  previousInbound: number;
  previousOutbound: number;
  previousPackets: number | null;
  werePacketsPartial: boolean;
  isPreviousObserved: boolean;
}

/** Sums of a range with those of the time before. */
export function besideBefore(now: readonly AddressSum[], before: readonly AddressSum[]): UsageSum[] {
  const earlier = new Map(before.map((sum) => [sum.allocationId, sum]));
  const sums = now.map((sum) => {
    const held = earlier.get(sum.allocationId);
    earlier.delete(sum.allocationId);
    return toUsage(sum, sum, held);
  });
  for (const sum of earlier.values()) sums.push(toUsage(sum, undefined, sum));
  return sums;
}

const toUsage = (
  { serverId, address }: AddressSum,
  now: AddressSum | undefined,
  before: AddressSum | undefined,
): UsageSum => ({
  serverId,
  address,
  inboundBytes: now?.inboundBytes ?? 0,
  outboundBytes: now?.outboundBytes ?? 0,
  packets: now?.packets ?? null,
  arePacketsPartial: now?.arePacketsPartial ?? false,
  previousInbound: before?.inboundBytes ?? 0,
  previousOutbound: before?.outboundBytes ?? 0,
  previousPackets: before?.packets ?? null,
  werePacketsPartial: before?.arePacketsPartial ?? false,
  isPreviousObserved: before !== undefined,
});

const sumOfKnown = (a: number | null, b: number | null) => (a === null ? b : b === null ? a : a + b);

/** One sum for each key, with the server and the address of the first. The rows stay as they are; a sum of one row is that row. */
export function addUp<Key>(rows: readonly UsageSum[], keyOf: (row: UsageSum) => Key): UsageSum[] {
  const sums = new Map<Key, UsageSum>();
  // Most servers have one address: only what is added to is a copy.
  const copied = new Set<Key>();
  for (const row of rows) {
    const key = keyOf(row);
    const known = sums.get(key);
    if (known === undefined) {
      sums.set(key, row);
      continue;
    }
    const sum = copied.has(key) ? known : { ...known };
    if (sum !== known) {
      copied.add(key);
      sums.set(key, sum);
    }
    sum.inboundBytes += row.inboundBytes;
    sum.outboundBytes += row.outboundBytes;
    sum.previousInbound += row.previousInbound;
    sum.previousOutbound += row.previousOutbound;
    sum.packets = sumOfKnown(sum.packets, row.packets);
    sum.previousPackets = sumOfKnown(sum.previousPackets, row.previousPackets);
    sum.arePacketsPartial ||= row.arePacketsPartial;
    sum.werePacketsPartial ||= row.werePacketsPartial;
    sum.isPreviousObserved ||= row.isPreviousObserved;
  }
  return [...sums.values()];
}

/** The time before; null where it was not observed. Of its packets a part would look like a change. */
export function previousOf({ directions }: Pick<Opened, 'directions'>, sum: UsageSum): Amount | null {
  if (!sum.isPreviousObserved) return null;
  return {
    inBytes: directions.in ? sum.previousInbound : 0,
    outBytes: directions.out ? sum.previousOutbound : 0,
    packets: sum.werePacketsPartial ? null : sum.previousPackets,
  };
}
