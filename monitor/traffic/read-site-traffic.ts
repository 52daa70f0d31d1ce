import type { FactStore } from '#monitor/facts/index.ts';

/** A site's traffic over time: the sum over its addresses, each at its strongest capture. */
export interface SiteTraffic {
  /** Start of each step. */
  timesMs: number[];
  /** Mean rates over the observed minutes of the step, bits and packets per second; null without one. */
  inBps: (number | null)[];
  outBps: (number | null)[];
  pps: (number | null)[];
  /** Most addresses seen in one minute of the step. */
  addresses: (number | null)[];
  /** Observed minutes of the step. */
  minutes: number[];
}

/** Reads the range in steps; a step without an observed minute is a gap. */
export async function readSiteTraffic(
  facts: Pick<FactStore, 'sumSite'>,
  range: { siteId: number; fromMs: number; toMs: number; stepSeconds: number },
): Promise<SiteTraffic> {
  const rows = await facts.sumSite({
    siteId: range.siteId,
    fromMinute: range.fromMs / 1000,
    toMinute: range.toMs / 1000,
    stepSeconds: range.stepSeconds,
  });
  const byTime = new Map(rows.map((row) => [row.timeMs, row]));
  const traffic: SiteTraffic = { timesMs: [], inBps: [], outBps: [], pps: [], addresses: [], minutes: [] };
  for (let timeMs = range.fromMs; timeMs < range.toMs; timeMs += range.stepSeconds * 1000) {
    const row = byTime.get(timeMs);
    const seconds = (row?.minutes ?? 0) * 60;
    traffic.timesMs.push(timeMs);
    traffic.inBps.push(row ? (row.rxBytes * 8) / seconds : null);
    traffic.outBps.push(row ? (row.txBytes * 8) / seconds : null);
    traffic.pps.push(row ? row.packets / seconds : null);
    traffic.addresses.push(row?.addresses ?? null);
    traffic.minutes.push(row?.minutes ?? 0);
  }
  return traffic;
}
