/** What other thresholds would have found, and which fit what was there: over the detector minutes that are stored. */
import { type AttackDirection, attackDirections } from '#contracts/incidents.ts';
import { type Metric, type ThresholdSet, thresholdDefaults } from '#contracts/sensor-api/detection.ts';
import { explainAddress } from './explain-address.ts';
import type { ProtectionDeps } from './index.ts';
import { learnMinutesMin, type Proposal, propose } from './learn.ts';
import { countOlder, rangeOf, readLoud, readPercentiles } from './read-maxima.ts';
import { type ComparedIncident, compare, type Finding, floorsOf, replay } from './replay.ts';
import { parseChoices, resolveChoices, type ThresholdChoices, type ThresholdTexts } from './thresholds.ts';

/** How far back detector minutes are kept. */
export const whatIfDays = 90;
const dayMs = 86_400_000;

export interface WhatIf {
  fromMs: number;
  toMs: number;
  /** Minutes with traffic of the address that a detector reported. */
  minutes: number;
  /** Those that were counted by flows, the rule of older sensors. */
  olderMinutes: number;
  /** The thresholds that were asked about. */
  thresholds: ThresholdSet;
  findings: Finding[];
  /** What the present thresholds find in the same minutes. */
  present: Finding[];
  /** Both, incident by incident. */
  compared: ComparedIncident[];
}

/** Blank texts stand for the present thresholds. Throws `protection.invalid`. */
export async function askWhatIf(
  deps: ProtectionDeps,
  siteId: number,
  address: string,
  texts: ThresholdTexts,
  nowMs: number,
): Promise<WhatIf> {
  const asked = parseChoices(texts);
  const { address: canonical, thresholds: present } = await explainAddress(deps, siteId, address);
  return replayThresholds(deps, siteId, canonical, resolveChoices(present, asked), present, nowMs);
}

/** What these thresholds would have found of an address, beside those that sensors judge by. */
export async function replayThresholds(
  deps: Pick<ProtectionDeps, 'reader'>,
  siteId: number,
  address: string,
  thresholds: ThresholdSet,
  present: ThresholdSet,
  nowMs: number,
): Promise<WhatIf> {
  const [fromMs, toMs] = [nowMs - whatIfDays * dayMs, nowMs];
  const range = await rangeOf(deps.reader(), siteId, address, fromMs, toMs);
  const [{ minutes, maxima }, olderMinutes] = await Promise.all([
    readLoud(deps.reader(), range, floorsOf(thresholds, present)),
    countOlder(deps.reader(), range),
  ]);
  return {
    ...{ fromMs, toMs, minutes, olderMinutes, thresholds },
    findings: replay(maxima, thresholds, present),
    present: replay(maxima, present, present),
    compared: compare(maxima, thresholds, present),
  };
}

export interface Learned {
  /** Minutes with traffic, and those among them that older sensors counted by flows. */
  minutes: number;
  olderMinutes: number;
  /** False: too few minutes to propose anything. */
  isEnough: boolean;
  proposals: Proposal[];
}

/** Thresholds from the 99.9th percentile of the minutes with traffic. Nothing is changed. */
export async function learnThresholds(
  deps: ProtectionDeps,
  siteId: number,
  address: string,
  nowMs: number,
): Promise<Learned> {
  const { address: canonical, thresholds } = await explainAddress(deps, siteId, address);
  const range = await rangeOf(deps.reader(), siteId, canonical, nowMs - whatIfDays * dayMs, nowMs);
  const { minutes, percentiles } = await readPercentiles(deps.reader(), range, thresholds);
  const olderMinutes = await countOlder(deps.reader(), range);
  const isEnough = minutes >= learnMinutesMin;
  return {
    ...{ minutes, olderMinutes, isEnough },
    proposals: isEnough ? propose(percentiles, thresholds, thresholdDefaults) : [],
  };
}

/** Proposals as what an address sets, on top of what it sets already. */
export function withProposals(
  choices: ThresholdChoices,
  proposals: readonly Pick<Proposal, 'direction' | 'metric' | 'proposed'>[],
): ThresholdChoices {
  const of = (direction: AttackDirection): Partial<Record<Metric, number | null>> => ({
    ...choices[direction],
    ...Object.fromEntries(
      proposals.filter((one) => one.direction === direction).map((one) => [one.metric, one.proposed]),
    ),
  });
  return Object.fromEntries(
    attackDirections.map((direction) => [direction, of(direction)]),
  ) as unknown as ThresholdChoices;
}
