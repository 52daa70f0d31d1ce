/** What a sensor sees of incidents, on the wire. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { attackClassOf } from '../attack-classes.ts';
import { attackDirections, incidentCoverages, incidentSeverities, targetKinds } from '../incidents.ts';
import {
  filterProblemMax,
  type IncidentFilter,
  type IncidentObservation,
  type IncidentReason,
  type IncidentTarget,
  type IncidentVector,
  type Metric,
  metrics,
  type OrdinaryRule,
  ordinaryRules,
  type Trigger,
  triggers,
  type VectorDetails,
} from './detection.ts';
import { captureNameMax } from './telemetry.ts';
import type {
  Incident,
  IncidentSchema,
  IncidentReason as ReasonMessage,
  VectorDetails as WireDetails,
  IncidentFilter as WireFilter,
} from './telemetry_pb.js';
import {
  canonicalAddressText,
  canonicalPrefixText,
  checkColumns,
  countOf,
  malformed,
  momentOf,
  plainText,
  smallCountOf,
  uuidOf,
} from './telemetry-values.ts';

const million = 1_000_000;

const whole = (value: number) => BigInt(Math.round(value));
const millionths = (share: number) => Math.round(Math.min(1, Math.max(0, share)) * million);

export function encodeIncident(one: IncidentObservation): MessageInitShape<typeof IncidentSchema> {
  return {
    id: one.id,
    revision: one.revision,
    capture: one.capture,
    targetKind: one.target.kind,
    target: one.target.value,
    direction: one.direction,
    class: one.class,
    severity: one.severity,
    vectors: one.vectors.map((vector) => ({
      class: vector.class,
      packetsShare: millionths(vector.packetsShare),
      bytesShare: millionths(vector.bytesShare),
      ports: vector.ports,
      ...(vector.details && { details: encodeDetails(vector.details) }),
    })),
    startedAt: whole(one.startedAtMs),
    detectedAt: whole(one.detectedAtMs),
    lastObservedAt: whole(one.lastObservedAtMs),
    recoveredAt: whole(one.recoveredAtMs ?? 0),
    currentBps: whole(one.current?.bps ?? 0),
    currentPps: whole(one.current?.pps ?? 0),
    peakBps: whole(one.peak.bps),
    peakBpsAt: whole(one.peak.bpsAtMs),
    peakPps: whole(one.peak.pps),
    peakPpsAt: whole(one.peak.ppsAtMs),
    bytes: whole(one.totals.bytes),
    packets: whole(one.totals.packets),
    coverage: one.coverage,
    deviceKey: one.deviceKey,
    thresholdMetric: one.threshold?.metric ?? '',
    thresholdValue: whole(one.threshold?.value ?? 0),
    remotePrefix: one.remotes.map(({ prefix }) => prefix),
    remoteShare: one.remotes.map(({ share }) => millionths(share)),
    seconds: {
      at: one.seconds.map(({ atMs }) => whole(atMs)),
      bps: one.seconds.map(({ bps }) => whole(bps)),
      pps: one.seconds.map(({ pps }) => whole(pps)),
    },
    drill: one.drill,
    hasEvidence: one.hasEvidence,
    spoofed: one.isSpoofed ?? false,
    ...(one.reason && { reason: encodeReason(one.reason) }),
    ...(one.filter && { filter: encodeFilter(one.filter) }),
  };
}

function encodeFilter({ matched, dropped, passed, current, isDropping, problem }: IncidentFilter) {
  return {
    ...{ matchedPackets: whole(matched.packets), matchedBytes: whole(matched.bytes) },
    ...{ droppedPackets: whole(dropped.packets), droppedBytes: whole(dropped.bytes) },
    ...{ passedPackets: whole(passed.packets), passedBytes: whole(passed.bytes) },
    ...{ currentBps: whole(current.bps), currentPps: whole(current.pps) },
    ...{ dropping: isDropping, problem: problem.slice(0, filterProblemMax) },
  };
}

function encodeReason({ trigger, ratios, all, ordinary, pairs, remotes }: IncidentReason) {
  return {
    trigger,
    ratios: ratios.map((ratio) => Math.min(0xffff_ffff, Math.round(ratio * 100))),
    packets: whole(all.packets),
    bytes: whole(all.bytes),
    ordinaryRule: ordinary.map(({ rule }) => rule),
    ordinaryPackets: ordinary.map(({ packets }) => whole(packets)),
    ordinaryBytes: ordinary.map(({ bytes }) => whole(bytes)),
    hasPairs: pairs !== null,
    establishedPairs: pairs?.established ?? 0,
    otherPairs: pairs?.others ?? 0,
    remotes: remotes ?? 0,
  };
}

const encodeDetails = ({ sourcePorts, protocols, startedAtMs, lastObservedAtMs, peak }: VectorDetails) => ({
  ...{ sourcePorts, protocols, startedAt: whole(startedAtMs), lastObservedAt: whole(lastObservedAtMs) },
  ...{ peakBps: whole(peak.bps), peakPps: whole(peak.pps) },
});

/** The observations in these messages. Throws `telemetry.malformed`. */
export function decodeIncidents(messages: readonly Incident[]): IncidentObservation[] {
  const incidents = messages.map(decodeIncident);
  const keys = new Set(incidents.map(({ id, revision }) => `${id} ${revision}`));
  if (keys.size !== incidents.length) throw malformed('a revision of an incident occurs twice');
  return incidents;
}

function decodeIncident(message: Incident): IncidentObservation {
  const field = (name: string) => `incidents.${name}`;
  if (message.revision < 1) throw malformed('incidents.revision starts at 1');
  const startedAtMs = momentOf(message.startedAt, field('started_at'));
  const detectedAtMs = momentOf(message.detectedAt, field('detected_at'));
  const lastObservedAtMs = momentOf(message.lastObservedAt, field('last_observed_at'));
  const recoveredAtMs =
    message.recoveredAt === 0n ? null : momentOf(message.recoveredAt, field('recovered_at'));
  if (lastObservedAtMs < startedAtMs) throw malformed('an incident was last observed before it started');
  if (recoveredAtMs !== null && recoveredAtMs < startedAtMs) {
    throw malformed('an incident recovered before it started');
  }
  const current = {
    bps: countOf(message.currentBps, field('current_bps')),
    pps: countOf(message.currentPps, field('current_pps')),
  };
  return {
    id: uuidOf(message.id, field('id')),
    revision: smallCountOf(message.revision, field('revision')),
    capture: plainText(message.capture, captureNameMax, field('capture')),
    target: decodeTarget(message),
    direction: nameOf(message.direction, attackDirections, field('direction')),
    class: classOf(message.class),
    severity: nameOf(message.severity, incidentSeverities, field('severity')),
    vectors: message.vectors.map(
      (vector): IncidentVector => ({
        class: classOf(vector.class),
        packetsShare: shareOf(vector.packetsShare),
        bytesShare: shareOf(vector.bytesShare),
        ports: vector.ports.map(portOf),
        ...(vector.details && { details: decodeDetails(vector.details) }),
      }),
    ),
    state: recoveredAtMs === null ? 'active' : 'recovered',
    startedAtMs,
    detectedAtMs,
    lastObservedAtMs,
    recoveredAtMs,
    current: recoveredAtMs === null ? current : null,
    peak: {
      bps: countOf(message.peakBps, field('peak_bps')),
      bpsAtMs: momentOf(message.peakBpsAt, field('peak_bps_at')),
      pps: countOf(message.peakPps, field('peak_pps')),
      ppsAtMs: momentOf(message.peakPpsAt, field('peak_pps_at')),
    },
    totals: {
      bytes: countOf(message.bytes, field('bytes')),
      packets: countOf(message.packets, field('packets')),
    },
    coverage: nameOf(message.coverage, incidentCoverages, field('coverage')),
    deviceKey: plainText(message.deviceKey, 255, field('device_key')),
    threshold: decodeThreshold(message),
    ...decodeColumns(message),
    drill: message.drill,
    hasEvidence: message.hasEvidence,
    ...decodeReason(message.reason),
    ...(message.spoofed && { isSpoofed: true }),
    ...(message.filter && { filter: decodeFilter(message.filter) }),
  };
}

function decodeFilter(filter: WireFilter): IncidentFilter {
  const count = (value: bigint, name: string) => countOf(value, `incidents.filter.${name}`);
  return {
    matched: {
      packets: count(filter.matchedPackets, 'matched_packets'),
      bytes: count(filter.matchedBytes, 'matched_bytes'),
    },
    dropped: {
      packets: count(filter.droppedPackets, 'dropped_packets'),
      bytes: count(filter.droppedBytes, 'dropped_bytes'),
    },
    passed: {
      packets: count(filter.passedPackets, 'passed_packets'),
      bytes: count(filter.passedBytes, 'passed_bytes'),
    },
    current: { bps: count(filter.currentBps, 'current_bps'), pps: count(filter.currentPps, 'current_pps') },
    isDropping: filter.dropping,
    problem: plainText(filter.problem, filterProblemMax, 'incidents.filter.problem'),
  };
}

function decodeDetails(details: WireDetails): VectorDetails {
  const field = (name: string) => `incidents.vectors.${name}`;
  const startedAtMs = momentOf(details.startedAt, field('started_at'));
  const lastObservedAtMs = momentOf(details.lastObservedAt, field('last_observed_at'));
  if (lastObservedAtMs < startedAtMs) throw malformed('a vector was last observed before it started');
  return {
    sourcePorts: details.sourcePorts.map(portOf),
    protocols: details.protocols.map(protocolOf),
    startedAtMs,
    lastObservedAtMs,
    peak: {
      bps: countOf(details.peakBps, field('peak_bps')),
      pps: countOf(details.peakPps, field('peak_pps')),
    },
  };
}

/** The reason; one with a name that we don't know is none, because its parts would not add up. */
function decodeReason(message: ReasonMessage | undefined): Pick<IncidentObservation, 'reason'> {
  if (!message) return {};
  const { ordinaryRule: rules, ordinaryPackets, ordinaryBytes } = message;
  checkColumns('an incident', rules.length, [ordinaryPackets, ordinaryBytes]);
  const field = (name: string) => `incidents.reason.${name}`;
  const ordinary = rules.map((rule, i) => ({
    rule: rule as OrdinaryRule,
    packets: countOf(ordinaryPackets[i]!, field('ordinary_packets')),
    bytes: countOf(ordinaryBytes[i]!, field('ordinary_bytes')),
  }));
  const all = {
    packets: countOf(message.packets, field('packets')),
    bytes: countOf(message.bytes, field('bytes')),
  };
  const trigger = message.trigger as Trigger;
  if (!Object.hasOwn(triggers, trigger) || rules.some((rule) => !Object.hasOwn(ordinaryRules, rule)))
    return {};
  const pairs = message.hasPairs
    ? { established: message.establishedPairs, others: message.otherPairs }
    : null;
  const ratios = message.ratios.map((ratio) => ratio / 100);
  return { reason: { trigger, ratios, all, ordinary, pairs, remotes: message.remotes || null } };
}

function decodeTarget({ targetKind, target }: Incident): IncidentTarget {
  const kind = nameOf(targetKind, targetKinds, 'incidents.target_kind');
  // Another spelling of an IPv4 address must not be another target.
  if (kind === 'host')
    return { kind, value: canonicalAddressText(target, 'incidents.target').replace(/^::ffff:(?=.*\.)/, '') };
  if (kind === 'prefix') return { kind, value: canonicalPrefixText(target, 'incidents.target') };
  return { kind, value: plainText(target, captureNameMax, 'incidents.target') };
}

/** The threshold; one of a metric that we don't know is none. */
function decodeThreshold({ thresholdMetric, thresholdValue }: Incident): IncidentObservation['threshold'] {
  const metric = metrics.find((known) => known === thresholdMetric);
  return metric
    ? { metric: metric as Metric, value: countOf(thresholdValue, 'incidents.threshold_value') }
    : null;
}

function decodeColumns(message: Incident): Pick<IncidentObservation, 'remotes' | 'seconds'> {
  const { remotePrefix, remoteShare } = message;
  const { at, bps, pps } = message.seconds ?? { at: [], bps: [], pps: [] };
  checkColumns('an incident', remotePrefix.length, [remoteShare]);
  checkColumns('an incident', at.length, [bps, pps]);
  return {
    remotes: remotePrefix.map((prefix, i) => ({
      prefix: canonicalPrefixText(prefix, 'incidents.remote_prefix'),
      share: shareOf(remoteShare[i]!),
    })),
    seconds: at.map((moment, i) => ({
      atMs: momentOf(moment, 'incidents.seconds.at'),
      bps: countOf(bps[i]!, 'incidents.seconds.bps'),
      pps: countOf(pps[i]!, 'incidents.seconds.pps'),
    })),
  };
}

function classOf(name: string): IncidentObservation['class'] {
  return attackClassOf(plainText(name, 32, 'incidents.class'));
}

function nameOf<Name extends string>(text: string, names: readonly Name[], field: string): Name {
  const known = names.find((name) => name === text);
  if (!known) throw malformed(`${field} must be one of ${names.join(', ')}`);
  return known;
}

function shareOf(value: number): number {
  if (value > million) throw malformed('a share of an incident is over 1');
  return value / million;
}

function portOf(port: number): number {
  if (port > 65_535) throw malformed('a port of an incident is over 65535');
  return port;
}

function protocolOf(protocol: number): number {
  if (protocol > 255) throw malformed('an IP protocol of an incident is over 255');
  return protocol;
}
