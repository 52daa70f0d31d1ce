/** The heaviest observations that never overlap one another. */

export interface Amount {
  bytes: number;
  packets: number;
}

export interface Span {
  fromMs: number;
  toMs: number;
  amount: Amount;
}

/** True when the first has more bytes, or as many and more packets. */
function isHeavier(a: Amount, b: Amount): boolean {
  return a.bytes > b.bytes || (a.bytes === b.bytes && a.packets > b.packets);
}

/**
 * The largest sum of amounts whose spans don't overlap (weighted interval scheduling). Simultaneous spans are views of the
 * same traffic and never add.
 */
export function heaviest(spans: readonly Span[]): Amount {
  const sorted = spans.toSorted((a, b) => a.toMs - b.toMs || a.fromMs - b.fromMs);
  const best: Amount[] = [{ bytes: 0, packets: 0 }];
  for (const [i, { fromMs, amount }] of sorted.entries()) {
    // How many of those before end no later than this one starts.
    let before = i;
    while (before > 0 && sorted[before - 1]!.toMs > fromMs) before -= 1;
    const earlier = best[before]!;
    const taken = { bytes: earlier.bytes + amount.bytes, packets: earlier.packets + amount.packets };
    best.push(isHeavier(taken, best[i]!) ? taken : best[i]!);
  }
  const sum = best.at(-1)!;
  return {
    bytes: Math.min(sum.bytes, Number.MAX_SAFE_INTEGER),
    packets: Math.min(sum.packets, Number.MAX_SAFE_INTEGER),
  };
}
