/**
 * Turns running counters into exact minutes.
 *
 * The counters are read twice around each UTC minute, inside the rest of the traffic. Where both readings agree, no
 * packet came near the boundary and the minute is exact, independent of any clock; where they don't (a stalled machine,
 * traffic that does not rest), the minutes on both sides are marked so instead of being guessed.
 */
import type { AddressCount } from './counters.ts';

/** One line of the ledger. */
export interface TruthRow {
  /** Start of the UTC minute, seconds since 1970. */
  minute: number;
  address: string;
  /** IP bytes to and from the address that crossed the uplink. */
  rx_bytes: number;
  tx_bytes: number;
  rx_packets: number;
  tx_packets: number;
  /** False when packets near one of the minute's edges make it ambiguous. */
  exact: boolean;
}

export interface Reading {
  atMs: number;
  counts: ReadonlyMap<string, AddressCount>;
}

const zero: AddressCount = { rxBytes: 0, rxPackets: 0, txBytes: 0, txPackets: 0 };

export interface MinuteLedger {
  /**
   * Closes the minute that ends at `boundaryMs` with the readings before and after it, and returns its rows. Rows are
   * exact where the traffic was still between the readings, at this boundary and at the one before.
   */
  close(boundaryMs: number, before: Reading, after: Reading): TruthRow[];
}

/** `first` is the reading at the start. The minute it lies in is never exact: an earlier run may have had a part of it. */
export function createMinuteLedger(first: Reading): MinuteLedger {
  let base = first.counts;
  let unclear = new Set<string>();
  let isFirst = true;
  let lastBoundaryMs = Math.floor(first.atMs / 60_000) * 60_000;
  return {
    close(boundaryMs, before, after) {
      const isNext = boundaryMs === lastBoundaryMs + 60_000;
      const isInTime = before.atMs < boundaryMs && after.atMs >= boundaryMs;
      const moved = new Set<string>();
      const rows: TruthRow[] = [];
      for (const [address, count] of after.counts) {
        if (!isInTime || !isSame(count, before.counts.get(address) ?? zero)) moved.add(address);
        const from = base.get(address) ?? zero;
        rows.push({
          minute: boundaryMs / 1000 - 60,
          address,
          rx_bytes: count.rxBytes - from.rxBytes,
          tx_bytes: count.txBytes - from.txBytes,
          rx_packets: count.rxPackets - from.rxPackets,
          tx_packets: count.txPackets - from.txPackets,
          exact: isNext && !isFirst && !unclear.has(address) && !moved.has(address),
        });
      }
      base = after.counts;
      unclear = moved;
      isFirst = false;
      lastBoundaryMs = boundaryMs;
      return rows;
    },
  };
}

function isSame(a: AddressCount, b: AddressCount): boolean {
  return (
    a.rxBytes === b.rxBytes &&
    a.txBytes === b.txBytes &&
    a.rxPackets === b.rxPackets &&
    a.txPackets === b.txPackets
  );
}
