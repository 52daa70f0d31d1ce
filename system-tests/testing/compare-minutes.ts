/** Compares the minutes shown to a customer with the counters of nftables. */
import type { TruthRow } from '#lab/index.ts';
import type { ProtectMinute } from './people.ts';

export interface Comparison {
  /** Number of equal minutes. */
  equal: number;
  /** Sentences about wrong minutes. */
  faults: string[];
}

/**
 * Every shown minute with an exact counter must equal it. A minute in `gaps` ("minute" in seconds) was only partly
 * observed; it may show less than the counter, never more.
 */
export function compareMinutes(
  shown: readonly ProtectMinute[],
  truth: readonly TruthRow[],
  gaps: ReadonlySet<number> = new Set(),
): Comparison {
  const rows = new Map(truth.map((row) => [`${row.minute} ${row.address}`, row]));
  const seen = new Set<string>();
  const comparison: Comparison = { equal: 0, faults: [] };
  for (const minute of shown) {
    const start = Date.parse(minute.timestamp) / 1000;
    const key = `${start} ${minute.address}`;
    if (seen.has(key)) comparison.faults.push(`${key} is shown twice`);
    seen.add(key);
    const row = rows.get(key);
    if (!row?.exact || minute.inbound_bytes === null || minute.outbound_bytes === null) continue;
    const isEqual = minute.inbound_bytes === row.rx_bytes && minute.outbound_bytes === row.tx_bytes;
    const isLess = minute.inbound_bytes <= row.rx_bytes && minute.outbound_bytes <= row.tx_bytes;
    if (isEqual) comparison.equal += 1;
    else if (!gaps.has(start) || !isLess) {
      const words = `shows ${minute.inbound_bytes} in, ${minute.outbound_bytes} out`;
      comparison.faults.push(`${key} ${words}; the truth is ${row.rx_bytes} in, ${row.tx_bytes} out`);
    }
  }
  return comparison;
}

/** With fewer rows, one pause of the machine at the end of a minute would be a large part of them. */
const shareJudgedFromRows = 60;

/** Errors in the counters themselves: a lab whose traffic never pauses proves nothing. */
export function findUnclear(truth: readonly TruthRow[]): string[] {
  const unclear = truth.filter((row) => !row.exact).length;
  if (truth.length < shareJudgedFromRows || unclear * 2 <= truth.length) return [];
  return [`the truth itself is unclear in ${unclear} of ${truth.length} rows`];
}
