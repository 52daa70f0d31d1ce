import { describeProtocol, protocolTitle } from '#contracts/ip-protocols.ts';
import { fastTriggerRatio, ordinaryRules, triggers } from '#contracts/sensor-api/detection.ts';
import type { DetectorResult, Incident, LargeTarget } from '#sensor/detector/index.ts';
import {
  type Column,
  formatAmount,
  formatCount,
  formatInstant,
  formatMs,
  type InstantOfFrame,
  paint,
  renderTable,
  type TextLook,
} from './text-output.ts';

/** What was found in one file. */
export interface Detection {
  packets: number;
  firstAt: InstantOfFrame | null;
  lastAt: InstantOfFrame | null;
  result: DetectorResult;
  /** True when every packet of the file was read whole and decoded. */
  isWhole: boolean;
  problems: string[];
}

// Why each incident of a capture is one, and why the largest other traffic is none: as JSON and in words.

type Reason = LargeTarget['reason'];

const reasonJson = ({ ratios, all, ordinary, pairs, remotes }: Reason) => ({
  ratios: ratios.map(hundredths),
  all,
  ordinary: Object.fromEntries(ordinary.map(({ rule, packets, bytes }) => [rule, { packets, bytes }])),
  rest: restOf({ all, ordinary }),
  pairs,
  remotes,
});

const incidentReasonJson = ({ threshold, reason }: Incident) =>
  reason && { trigger: reason.trigger, threshold, ...reasonJson(reason) };

const largeTargetJson = (one: LargeTarget) => ({
  ...{ target: one.target, direction: one.direction, at: formatMs(one.at) },
  ...{ ratio: hundredths(one.ratio), threshold: one.threshold },
  ...{ seconds_at_threshold: one.secondsAtThreshold, loud_seconds: one.loudSeconds },
  reason: reasonJson(one.reason),
});

/** Lines that belong to an incident. */
function incidentReasonLines({ reason, threshold, class: name }: Incident): string[] {
  if (!reason) return [];
  return [
    `  why: ${triggers[reason.trigger]} (${thresholdText(threshold)}); the seconds were at ${ratiosText(reason)} times it`,
    ...amountLines(reason),
    ...(name === 'high_volume' ? ['    the rest alone is below every threshold: ordinary traffic'] : []),
  ];
}

/** Lines of a target without an incident. */
function largeTargetLines(one: LargeTarget): string[] {
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

// The incidents of a capture as JSON.

/** One JSON object, with a line break at its end. `explains`: with reasons, and the largest other targets. */
export function detectionJson(detection: Detection, explains: boolean): string {
  const { packets, firstAt, lastAt, result, isWhole } = detection;
  const { complete, ticks, hosts, overflowed, evictedPairs, incidents } = result;
  const answer = {
    capture: { packets, first_at: formatInstant(firstAt), last_at: formatInstant(lastAt) },
    detector: { complete: complete && isWhole, ticks, hosts, overflowed, evicted_pairs: evictedPairs },
    incidents: incidents.map((one) => ({
      ...incidentJson(one),
      ...(explains && { reason: incidentReasonJson(one) }),
    })),
    ...(explains && { largest_others: result.largestOthers.map(largeTargetJson) }),
  };
  return `${JSON.stringify(answer, null, 2)}\n`;
}

function incidentJson(one: Incident) {
  return {
    target: one.target,
    direction: one.direction,
    class: one.class,
    severity: one.severity,
    vectors: vectorsOf(one),
    started_at: formatMs(one.startedAt),
    detected_at: formatMs(one.detectedAt),
    recovered_at: one.recoveredAt === null ? null : formatMs(one.recoveredAt),
    peak: { bps: Math.round(one.peak.bps), pps: Math.round(one.peak.pps) },
    bytes: Math.round(one.totals.bytes),
    packets: Math.round(one.totals.packets),
    top_sources: sourcesOf(one).map(({ prefix, share }) => ({
      prefix,
      share: Math.round(share * 1e4) / 1e4,
    })),
  };
}

/** All vectors that it had; those of its latest seconds have shares. */
function vectorsOf({ class: name, vectors, vectorTimes, startedAt, lastObservedAt, peak }: Incident) {
  const times = [...vectorTimes];
  if (name === 'high_volume')
    times.push({
      ...{ class: name, startedAt, lastObservedAt, peak, ports: vectors[0]!.ports },
      ...{ sourcePorts: [], protocols: [] },
    });
  return times.map((one) => {
    const latest = vectors.find((vector) => vector.class === one.class);
    return {
      class: one.class,
      packets_share: latest?.packets_share ?? 0,
      bytes_share: latest?.bytes_share ?? 0,
      ports: one.ports,
      source_ports: one.sourcePorts,
      protocols: one.protocols.map((number) => ({ number, name: protocolTitle(number) })),
      started_at: formatMs(one.startedAt),
      last_observed_at: formatMs(one.lastObservedAt),
      peak: { bps: Math.round(one.peak.bps), pps: Math.round(one.peak.pps) },
    };
  });
}

/** The sources of an inbound incident. */
function sourcesOf({ direction, remotes }: Incident): Incident['remotes'] {
  return direction === 'inbound' ? remotes : [];
}

// The incidents of a capture for people.

const columns: readonly Column[] = [
  { title: 'Target', style: 'name', shrinksTo: 18 },
  { title: 'Direction' },
  { title: 'Class', style: 'strong' },
  { title: 'Severity' },
  { title: 'Started' },
  { title: 'Decided', isNumber: true },
  { title: 'Recovered' },
  { title: 'Peak bits', isNumber: true },
  { title: 'Peak packets', isNumber: true },
  { title: 'Bytes', isNumber: true },
];
const sourcesShown = 5;
/** A flood from spoofed addresses has no network that is worth showing. */
const shownShareMin = 0.01;

/** Lines of the summary, the incidents and their vectors. `explains`: with reasons, and the largest other targets. */
export function* detectionLines(detection: Detection, look: TextLook, explains: boolean): Generator<string> {
  yield* incidentLines(detection, look, explains);
  const { largestOthers } = detection.result;
  if (largestOthers.length === 0) return;
  yield '';
  yield paint(`Largest without an incident (${formatCount(largestOthers.length)})`, 'strong', look);
  for (const one of largestOthers) yield* largeTargetLines(one);
}

function* incidentLines(detection: Detection, look: TextLook, explains: boolean): Generator<string> {
  const { packets, firstAt, lastAt, result } = detection;
  const span = firstAt && lastAt ? `, ${formatInstant(firstAt)} to ${formatInstant(lastAt)}` : '';
  yield `${formatCount(packets)} packets${span}; ${formatCount(result.hosts)} protected addresses, ${formatCount(result.ticks)} seconds judged.`;
  if (result.incidents.length === 0) {
    yield 'No incidents.';
    return;
  }
  yield '';
  yield paint(`Incidents (${formatCount(result.incidents.length)})`, 'strong', look);
  yield* renderTable(columns, result.incidents.map(cellsOf), look);
  for (const incident of result.incidents) {
    yield* detailLines(incident, look);
    if (explains) yield* incidentReasonLines(incident);
  }
}

function cellsOf(one: Incident): string[] {
  return [
    targetText(one),
    one.direction,
    one.class,
    one.severity,
    formatMs(one.startedAt).slice(0, 19),
    `${((one.detectedAt - one.startedAt) / 1000).toFixed(1)} s`,
    one.recoveredAt === null ? 'active' : formatMs(one.recoveredAt).slice(11, 19),
    formatAmount(one.peak.bps, 'bit/s'),
    formatAmount(one.peak.pps, 'p/s'),
    formatAmount(one.totals.bytes, 'B'),
  ];
}

const targetText = ({ target: { value, mac } }: Incident) =>
  mac === undefined ? value : `${mac} of ${value}`;

function* detailLines(one: Incident, look: TextLook): Generator<string> {
  yield '';
  yield paint(`${one.class} ${one.direction}, ${targetText(one)}`, 'strong', look);
  for (const vector of one.vectors) {
    const ports = vector.ports.length > 0 ? `, ports ${vector.ports.join(', ')}` : '';
    const sources = vector.source_ports.length > 0 ? `, from ports ${vector.source_ports.join(', ')}` : '';
    const protocols =
      vector.protocols.length > 0 ? `, IP protocol ${vector.protocols.map(describeProtocol).join(', ')}` : '';
    yield `  ${vector.class}: ${percent(vector.packets_share)} of packets, ${percent(vector.bytes_share)} of bytes${ports}${sources}${protocols}`;
  }
  for (const past of one.vectorTimes.filter(
    ({ class: name }) => !one.vectors.some((now) => now.class === name),
  ))
    yield `  before: ${past.class}, until ${formatMs(past.lastObservedAt).slice(11, 19)}`;
  const sources = sourcesOf(one)
    .filter(({ share }) => share >= shownShareMin)
    .slice(0, sourcesShown)
    .map(({ prefix, share }) => `${prefix} (${percent(share)})`);
  if (sources.length > 0) yield `  from ${sources.join(', ')}`;
  else if (sourcesOf(one).length > 0)
    yield `  from many networks, none with ${percent(shownShareMin)} of the packets`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}
