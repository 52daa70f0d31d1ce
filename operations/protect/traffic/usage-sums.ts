/** Arithmetic of the sums of addresses: a range beside the time before, what several of them are together, and the first of them. */
import type { Amount, Sides } from '#service-kit/explorer/index.ts';
import type { AddressSum } from './explorer-store.ts';

/** Bytes of the directions that count. */
export const ofSides = ({ inBytes, outBytes, packets }: Amount, sides: Sides): Amount => ({
  ...{ inBytes: sides.in ? inBytes : 0, outBytes: sides.out ? outBytes : 0, packets },
});

/** What an address did in a range beside the time before; of several addresses together it names the first. */
export interface UsageSum extends Omit<AddressSum, 'allocationId'> {
  previousIn: number;
  previousOut: number;
  previousPackets: number | null;
  werePacketsPartial: boolean;
  isPreviousObserved: boolean;
}

/** Sums of a range with those of the time before. */
export function besideBefore(
  sides: Sides,
  now: readonly AddressSum[],
  before: readonly AddressSum[],
): UsageSum[] {
  const earlier = new Map(before.map((sum) => [sum.allocationId, sum]));
  const toUsage = (of: AddressSum, sum?: AddressSum, held?: AddressSum): UsageSum => ({
    serverId: of.serverId,
    address: of.address,
    inBytes: sides.in ? (sum?.inBytes ?? 0) : 0,
    outBytes: sides.out ? (sum?.outBytes ?? 0) : 0,
    packets: sum?.packets ?? null,
    arePacketsPartial: sum?.arePacketsPartial ?? false,
    previousIn: sides.in ? (held?.inBytes ?? 0) : 0,
    previousOut: sides.out ? (held?.outBytes ?? 0) : 0,
    previousPackets: held?.packets ?? null,
    werePacketsPartial: held?.arePacketsPartial ?? false,
    isPreviousObserved: held !== undefined,
  });
  const sums = now.map((sum) => {
    const held = earlier.get(sum.allocationId);
    earlier.delete(sum.allocationId);
    return toUsage(sum, sum, held);
  });
  for (const held of earlier.values()) sums.push(toUsage(held, undefined, held));
  return sums;
}

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
    sum.inBytes += row.inBytes;
    sum.outBytes += row.outBytes;
    sum.previousIn += row.previousIn;
    sum.previousOut += row.previousOut;
    sum.packets = sumOfKnown(sum.packets, row.packets);
    sum.previousPackets = sumOfKnown(sum.previousPackets, row.previousPackets);
    sum.arePacketsPartial ||= row.arePacketsPartial;
    sum.werePacketsPartial ||= row.werePacketsPartial;
    sum.isPreviousObserved ||= row.isPreviousObserved;
  }
  return [...sums.values()];
}

export const amountOf = ({ inBytes, outBytes, packets }: UsageSum): Amount => ({
  inBytes,
  outBytes,
  packets,
});

/** The time before; null where it was not observed. Of its packets a part would look like a change. */
export const previousOf = (sum: UsageSum): Amount | null =>
  sum.isPreviousObserved
    ? {
        ...{ inBytes: sum.previousIn, outBytes: sum.previousOut },
        packets: sum.werePacketsPartial ? null : sum.previousPackets,
      }
    : null;

/** The first rows of an order, as sorting all of them would have them: few of many take one look at each. */
export function firstOf<Row>(
  rows: readonly Row[],
  limit: number,
  order: (a: Row, b: Row) => number,
): readonly Row[] {
  if (limit * 10 > rows.length) return rows.toSorted(order).slice(0, limit);
  const first: Row[] = [];
  for (const row of rows) {
    if (first.length === limit && order(first[limit - 1]!, row) <= 0) continue;
    let place = first.length;
    // Equal ones stay in the order in which they came.
    while (place > 0 && order(first[place - 1]!, row) > 0) place -= 1;
    first.splice(place, 0, row);
    if (first.length > limit) first.pop();
  }
  return first;
}
