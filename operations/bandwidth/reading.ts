/** Running totals and what was used between two of them: pure rules. */

/** Totals of one guest since it was started, from the guest's point of view. */
export interface Reading {
  serverId: number;
  inboundTotal: number;
  outboundTotal: number;
}

export interface StoredReading {
  boot: number;
  inboundTotal: number;
  outboundTotal: number;
  readAtMs: number;
}

export interface DayUse {
  /** `2025-11-03`, UTC. */
  day: string;
  inboundBytes: number;
  outboundBytes: number;
}

const dayMs = 86_400_000;

/**
 * What the new totals add to the old ones, and under which boot they stand. Totals that fell belong to a new boot, whose
 * every byte is new; what a guest used between the last reading and its restart is not known and not made up.
 */
export function compareReadings(
  before: StoredReading | null,
  now: Reading,
): { boot: number; inboundBytes: number; outboundBytes: number } {
  const isSameBoot =
    before !== null && now.inboundTotal >= before.inboundTotal && now.outboundTotal >= before.outboundTotal;
  if (isSameBoot)
    return {
      boot: before.boot,
      inboundBytes: now.inboundTotal - before.inboundTotal,
      outboundBytes: now.outboundTotal - before.outboundTotal,
    };
  return { boot: (before?.boot ?? 0) + 1, inboundBytes: now.inboundTotal, outboundBytes: now.outboundTotal };
}

/**
 * Spreads a use evenly over the time in which it came about, by UTC day. The parts add up to the whole, exactly; only
 * around midnight, between two readings, is their share an estimate.
 */
export function splitByDay(
  fromMs: number,
  toMs: number,
  use: { inboundBytes: number; outboundBytes: number },
): DayUse[] {
  const days: DayUse[] = [];
  const span = Math.max(1, toMs - fromMs);
  const given = { inboundBytes: 0, outboundBytes: 0 };
  const startMs = Math.min(fromMs, toMs - 1);
  for (let dayStart = Math.floor(startMs / dayMs) * dayMs; dayStart < toMs; dayStart += dayMs) {
    const share = (Math.min(dayStart + dayMs, toMs) - startMs) / span;
    const upTo = (bytes: number) => (dayStart + dayMs >= toMs ? bytes : Math.floor(bytes * share));
    const part = {
      inboundBytes: upTo(use.inboundBytes) - given.inboundBytes,
      outboundBytes: upTo(use.outboundBytes) - given.outboundBytes,
    };
    given.inboundBytes += part.inboundBytes;
    given.outboundBytes += part.outboundBytes;
    days.push({ day: new Date(dayStart).toISOString().slice(0, 10), ...part });
  }
  return days;
}
