/** Why the latest seconds of a target are an incident, or none: what was taken off as ordinary, and how far the rest came. */

import { type IncidentReason, type OrdinaryRule, ordinaryRules } from '#contracts/sensor-api/detection.ts';
import { Kind, kindCount, type PairCount } from '#sensor/attack-counters/index.ts';
import type { Observed } from './observed.ts';
import { attackPart, type Counts, type Traffic, totalOf } from './traffic.ts';

export type Reason = Omit<IncidentReason, 'trigger'>;

/** By which rule packets of a kind are taken off; all other kinds stay. */
export const ruleOfKind: Partial<Record<number, OrdinaryRule>> = {
  [Kind.twoWayDatagram]: 'pairs',
  [Kind.twoWaySegment]: 'connections',
  [Kind.opening]: 'handshakes',
  [Kind.openingAnswer]: 'answers',
  [Kind.reset]: 'answers',
  [Kind.icmpAnswer]: 'answers',
  [Kind.reply]: 'answers',
  [Kind.twoWayReflection]: 'answers',
};

/** The reason that a window shows. `ratios`: of each second. `strongest`: the second whose amounts it has. */
export function reasonOf(
  observed: Observed,
  ratios: readonly number[],
  strongest = ratios.indexOf(Math.max(...ratios)),
  pairs: PairCount | null = observed.window.detail?.pairs ?? null,
): Reason {
  const { window, remotes } = observed;
  const { counts, opposite } = observed.unassignedAt(strongest);
  return {
    ratios: [...ratios],
    all: totalOf(counts),
    ordinary: takenOff(counts, attackPart(counts, opposite, window.direction)),
    pairs: window.target.kind === 'host' ? pairs : null,
    remotes,
  };
}

function takenOff(counts: Counts, part: Traffic): Reason['ordinary'] {
  const found = new Map<OrdinaryRule, { packets: number; bytes: number }>();
  for (let kind = 0; kind < kindCount; kind += 1) {
    const rule = ruleOfKind[kind];
    const packets = Math.round(counts[kind]! - part.packets[kind]!);
    if (!rule || packets === 0) continue;
    const sum = found.get(rule) ?? { packets: 0, bytes: 0 };
    found.set(rule, sum);
    sum.packets += packets;
    sum.bytes += Math.round(counts[kindCount + kind]! - part.bytes[kind]!);
  }
  return (Object.keys(ordinaryRules) as OrdinaryRule[]).flatMap((rule) => {
    const sum = found.get(rule);
    return sum ? [{ rule, ...sum }] : [];
  });
}
