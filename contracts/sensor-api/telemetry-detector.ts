/** What a detector says of a minute, and its epochs, on the wire. */
import type { Slice, Sliced } from './decode-slices.ts';
import {
  type DetectorEpoch,
  type DetectorMinute,
  type DetectorRow,
  type Metric,
  metrics,
} from './detection.ts';
import type {
  DetectorEpoch as EpochMessage,
  DetectorMaxima as MaximaMessage,
  DetectorMinute as MinuteMessage,
} from './telemetry_pb.js';
import {
  canonicalAddressText,
  canonicalPrefixText,
  checkColumns,
  countOf,
  malformed,
  momentOf,
  smallCountOf,
  uuidOf,
} from './telemetry-values.ts';

export function encodeDetectorMinute(minute: DetectorMinute) {
  const { rows } = minute;
  return {
    ticks: minute.ticks,
    epochId: minute.epochId,
    overflowed: BigInt(minute.overflowed),
    incidentsLost: minute.incidentsLost,
    mergedFrames: BigInt(minute.mergedFrames),
    address: rows.map((row) => row.address),
    isOutbound: rows.map((row) => row.direction === 'outbound'),
    attackBytes: rows.map((row) => BigInt(row.attackBytes)),
    attackPackets: rows.map((row) => BigInt(row.attackPackets)),
    maxima: metrics.map((metric, i) => ({
      metric,
      oneSecond: rows.map((row) => BigInt(Math.round(row.oneSecond[i]!))),
      tenSeconds: rows.map((row) => BigInt(Math.round(row.tenSeconds[i]!))),
    })),
  };
}

/** The minute in this message. Throws `telemetry.malformed`. */
export function* decodeDetectorMinute(message: MinuteMessage, slice: Slice): Sliced<DetectorMinute> {
  const { address, isOutbound, attackBytes, attackPackets, maxima } = message;
  const { length } = address;
  if (message.ticks > 60) throw malformed('detector.ticks is over 60');
  const columns = maxima.flatMap((one) => [one.oneSecond, one.tenSeconds]);
  checkColumns('a detector minute', length, [isOutbound, attackBytes, attackPackets, ...columns]);
  if (slice.isFullFor(length)) yield slice.end();
  slice.add(length);
  const rows = address.map(
    (text, i): DetectorRow => ({
      address: canonicalAddressText(text, 'detector.address'),
      direction: isOutbound[i] ? 'outbound' : 'inbound',
      oneSecond: metrics.map(() => 0),
      tenSeconds: metrics.map(() => 0),
      attackBytes: countOf(attackBytes[i]!, 'detector.attack_bytes'),
      attackPackets: countOf(attackPackets[i]!, 'detector.attack_packets'),
    }),
  );
  const keys = new Set(rows.map((row) => `${row.direction} ${row.address}`));
  if (keys.size !== length) throw malformed('an address occurs twice in detector');
  const seen = new Set<string>();
  for (const one of maxima) {
    if (seen.has(one.metric)) throw malformed('a metric occurs twice in detector.maxima');
    seen.add(one.metric);
    if (slice.isFullFor(2 * length)) yield slice.end();
    slice.add(2 * length);
    readMaxima(one, rows);
  }
  return {
    ticks: message.ticks,
    epochId: message.epochId === '' ? '' : uuidOf(message.epochId, 'detector.epoch_id'),
    overflowed: countOf(message.overflowed, 'detector.overflowed'),
    incidentsLost: message.incidentsLost,
    mergedFrames: countOf(message.mergedFrames, 'detector.merged_frames'),
    rows,
  };
}

function readMaxima({ metric, oneSecond, tenSeconds }: MaximaMessage, rows: readonly DetectorRow[]): void {
  const at = metrics.indexOf(metric as Metric);
  if (at < 0) return;
  for (const [i, row] of rows.entries()) {
    row.oneSecond[at] = countOf(oneSecond[i]!, 'detector.maxima');
    row.tenSeconds[at] = countOf(tenSeconds[i]!, 'detector.maxima');
  }
}

export function encodeEpoch(epoch: DetectorEpoch) {
  const { id, sinceMs, prefixes, countingRule = 0 } = epoch;
  return { id, since: BigInt(Math.round(sinceMs)), prefixes, countingRule };
}

/** The epochs in these messages, which are few. Throws `telemetry.malformed`. */
export function* decodeEpochs(messages: readonly EpochMessage[], slice: Slice): Sliced<DetectorEpoch[]> {
  const epochs: DetectorEpoch[] = [];
  for (const { id, since, prefixes, countingRule } of messages) {
    if (slice.isFullFor(prefixes.length)) yield slice.end();
    slice.add(prefixes.length);
    epochs.push({
      id: uuidOf(id, 'epochs.id'),
      sinceMs: momentOf(since, 'epochs.since'),
      prefixes: prefixes.map((prefix) => canonicalPrefixText(prefix, 'epochs.prefixes')),
      ...(countingRule > 0 && { countingRule: smallCountOf(countingRule, 'epochs.counting_rule') }),
    });
  }
  return epochs;
}
