/** Why each incident of a capture is one, and why the largest other traffic is none: as JSON and in words. */
import { fastTriggerRatio, ordinaryRules, triggers } from '#contracts/sensor-api/detection.ts';
import type { Incident, LargeTarget } from '#sensor/detector/index.ts';
import { formatMs } from './instants.ts';
import { formatAmount, formatCount } from './text-table.ts';

type Reason = LargeTarget['reason'];

const reasonJson = ({ ratios, all, ordinary, pairs, remotes }: Reason) => ({
  ratios: ratios.map(hundredths),
  all,
  ordinary: Object.fromEntries(ordinary.map(({ rule, packets, bytes }) => [rule, { packets, bytes }])),
  rest: restOf({ all, ordinary }),
  pairs,
  remotes,
});

export const incidentReasonJson = ({ threshold, reason }: Incident) =>
  reason && { trigger: reason.trigger, threshold, ...reasonJson(reason) };

export const largeTargetJson = (one: LargeTarget) => ({
  ...{ target: one.target, direction: one.direction, at: formatMs(one.at) },
  ...{ ratio: hundredths(one.ratio), threshold: one.threshold },
  ...{ seconds_at_threshold: one.secondsAtThreshold, loud_seconds: one.loudSeconds },
  reason: reasonJson(one.reason),
});

/** Lines that belong to an incident. */
export function incidentReasonLines({ reason, threshold, class: name }: Incident): string[] {
  if (!reason) return [];
  return [
    `  why: ${triggers[reason.trigger]} (${thresholdText(threshold)}); the seconds were at ${ratiosText(reason)} times it`,
    ...amountLines(reason),
    ...(name === 'high_volume' ? ['    the rest alone is below every threshold: ordinary traffic'] : []),
  ];
}

/** Lines of a target without an incident. */
export function largeTargetLines(one: LargeTarget): string[] {
  const { target, direction, reason, at } = one;
  return [
    `${target.value} ${direction}: ${whyNone(one)}`,
    `  strongest second ${formatMs(at).slice(11, 19)} (${thresholdText(one.threshold)}); the seconds up to it were at ${ratiosText(reason)} times it`,
    ...amountLines(reason),
  ];
}

function whyNone({ ratio, secondsAtThreshold, loudSeconds, reason }: LargeTarget): string {
  if (ratio === 0 && restOf(reason).packets === 0) return 'all of it is ordinary';
  if (secondsAtThreshold === 0)
    return `what may be an attack was at most ${hundredths(ratio)} times a threshold`;
  return `seconds at a threshold: ${formatCount(secondsAtThreshold)}, at ${fastTriggerRatio} times: ${formatCount(loudSeconds)}; an incident takes ${Object.values(triggers).join('; or ')}`;
}

const thresholdText = (threshold: LargeTarget['threshold']) =>
  threshold ? `${threshold.metric} ${formatCount(threshold.value)}` : 'no single threshold';

function* amountLines(reason: Reason): Generator<string> {
  const { all, ordinary, pairs, remotes } = reason;
  yield `    ${'all'.padEnd(46)} ${amountText(all)}`;
  for (const { rule, ...amount } of ordinary)
    yield `    ${`- ${ordinaryRules[rule]}`.padEnd(46)} ${amountText(amount)}`;
  yield `    ${'= what may be an attack'.padEnd(46)} ${amountText(restOf(reason))}`;
  const parts = [
    pairs && `pairs: ${formatCount(pairs.established)} established, ${formatCount(pairs.others)} others`,
    remotes !== null &&
      `remote addresses among the packets that were looked at: about ${formatCount(remotes)}`,
  ].filter((part) => typeof part === 'string');
  if (parts.length > 0) yield `    ${parts.join('; ')}`;
}

const amountText = ({ packets, bytes }: Reason['all']) =>
  `${formatCount(packets).padStart(12)} packets ${formatAmount(bytes * 8, 'bit').padStart(12)}`;

function restOf({ all, ordinary }: Pick<Reason, 'all' | 'ordinary'>): Reason['all'] {
  const rest = { ...all };
  for (const { packets, bytes } of ordinary) {
    rest.packets -= packets;
    rest.bytes -= bytes;
  }
  return rest;
}

const ratiosText = ({ ratios }: Reason) => ratios.map((ratio) => ratio.toFixed(2)).join(', ');
const hundredths = (ratio: number) => Math.round(ratio * 100) / 100;
