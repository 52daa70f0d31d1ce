/** The thresholds of all addresses: a set for everything, and sets for groups of addresses. */
import { type DetailLimits, PrefixGroups } from '#sensor/attack-counters/index.ts';
import { lookedAtFrom } from './heat.ts';
import { prefixThresholds, type Thresholds } from './thresholds.ts';

/** Thresholds of addresses, and of their prefixes, with the rates from which a closer look is worth it. */
export interface ThresholdSet {
  host: Thresholds;
  hostLimits: DetailLimits;
  prefix: Thresholds;
  prefixLimits: DetailLimits;
}

export interface ThresholdGroup {
  /** Canonical prefixes and addresses. The longest one that has an address decides its group. */
  prefixes: readonly string[];
  thresholds: Thresholds;
}

export type ThresholdBook = ReturnType<typeof createThresholdBook>;

export function thresholdSet(host: Thresholds): ThresholdSet {
  const prefix = prefixThresholds(host);
  return { host, hostLimits: lookedAtFrom(host), prefix, prefixLimits: lookedAtFrom(prefix) };
}

export function createThresholdBook(thresholds: Thresholds, groups: readonly ThresholdGroup[] = []) {
  return {
    groups: new PrefixGroups(groups.map(({ prefixes }) => prefixes)),
    /** By group; the first is that of addresses in none. */
    sets: [thresholds, ...groups.map((group) => group.thresholds)].map(thresholdSet),
  };
}
