/** Compares what a customer is shown of each minute with what nftables counted. */
import type { TruthRow } from '#lab/index.ts';
import type { ProtectMinute } from './people.ts';

export interface Comparison {
  /** Minutes that are shown as they were. */
  equal: number;
  /** Sentences about minutes that are shown as they were not. */
  faults: string[];
}

/**
 * Every shown minute whose truth is exact must be equal to it. A minute that lies in `gaps` ("minute" in seconds) was
 * not wholly observed and says so elsewhere; it may show less than the truth, never more.
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

/** With fewer rows, one turn of a minute on a machine that stood still is a large share of them. */
const shareJudgedFromRows = 60;

/** What is wrong with the truth itself: a lab whose traffic never rests proves nothing. */
export function findUnclear(truth: readonly TruthRow[]): string[] {
  const unclear = truth.filter((row) => !row.exact).length;
  if (truth.length < shareJudgedFromRows || unclear * 2 <= truth.length) return [];
  return [`the truth itself is unclear in ${unclear} of ${truth.length} rows`];
}
