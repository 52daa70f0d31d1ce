/**
 * The /64 among the prefixes of IPv6: what one customer has. Packets of its addresses without counters of their own count in it as well
 * as in the /48. A word that the first 64 bits have not marks it.
 */
import type { SlotTable } from './slot-table.ts';

const mark = 1;

/** The slot of the /64 of two words, made while the table has fewer than `slotsMax`; -1 without one. */
export function networkSlot(prefixes: SlotTable, w0: number, w1: number, slotsMax = 0): number {
  const known = prefixes.find(6, w0, w1, mark, 0);
  return known >= 0 || prefixes.count >= slotsMax ? known : prefixes.locate(6, w0, w1, mark, 0);
}

export function isNetwork(prefixes: SlotTable, slot: number): boolean {
  return prefixes.version(slot) === 6 && prefixes.keyWord(slot, 2) === mark;
}
