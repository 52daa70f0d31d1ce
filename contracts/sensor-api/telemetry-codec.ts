/**
 * Telemetry between plain data and the bytes of an upload: the sensor encodes, the monitor decodes.
 *
 * `decodeUpload` returns exactly what `encodeUpload` was given, for any text from the wire
 * (control characters and over-long names are made harmless here, so that a hostile packet can't get a whole minute
 * refused). `decodeUpload` believes nothing: it throws a `CodedError` (`telemetry.malformed`) whose message says
 * what is wrong, and never returns counters that JavaScript can't hold exactly.
 */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type GapReason, gapReasons } from '../minute-reasons.ts';
import { decodeMessage, isWithinBounds, runAtOnce, type Slice, type Sliced } from './decode-slices.ts';
import { uploadBytesMax } from './http.ts';
import { isPlausible, looseCount, type SetAside } from './set-aside.ts';
import {
  captureNameMax,
  type TelemetryGap,
  type TelemetryHost,
  type TelemetryMinute,
  type TelemetryUpload,
  telemetryContractVersion,
} from './telemetry.ts';
import {
  type CaptureMinute as CaptureMinuteMessage,
  type CaptureMinuteSchema,
  CaptureRole,
  type Gap as GapMessage,
  type MetricPoint as MetricPointMessage,
  TelemetryUploadSchema,
} from './telemetry_pb.js';
import { uploadBounds } from './telemetry-bounds.ts';
import {
  decodeDetectorMinute,
  decodeEpochs,
  encodeDetectorMinute,
  encodeEpoch,
} from './telemetry-detector.ts';
import { decodeIncidents, encodeIncident } from './telemetry-incidents.ts';
import { decodeInventory, encodeInventory } from './telemetry-inventory.ts';
import { decodeProbes, encodeProbes } from './telemetry-probes.ts';
import { decodeSpoofed, encodeSpoofed } from './telemetry-spoofed.ts';
import { arePlausible, decodeTotals, encodeTotals } from './telemetry-totals.ts';
import { decodeUsage, encodeUsage } from './telemetry-usage.ts';
import {
  canonicalAddressText,
  cleanText,
  countOf,
  malformed,
  minuteOf,
  namesOf,
  plainText,
  uuidShape,
} from './telemetry-values.ts';

export * from './telemetry.ts';
export * from './upload-encoding.ts';

const roles = namesOf(CaptureRole);

/** The protobuf bytes of an upload, not yet compressed. */
export function encodeUpload(upload: TelemetryUpload): Uint8Array {
  return toBinary(
    TelemetryUploadSchema,
    create(TelemetryUploadSchema, {
      contractVersion: telemetryContractVersion,
      spoolId: upload.spoolId,
      sequence: BigInt(upload.sequence),
      sensorVersion: upload.sensorVersion,
      minutes: upload.minutes.map(encodeMinute),
      ...(upload.inventory ? { inventory: encodeInventory(upload.inventory) } : {}),
      ...(upload.probes ? { probes: encodeProbes(upload.probes) } : {}),
      incidents: (upload.incidents ?? []).map(encodeIncident),
      epochs: (upload.epochs ?? []).map(encodeEpoch),
      gaps: upload.gaps.map(({ fromMinute, toMinute, ...gap }) => ({
        ...gap,
        fromMinute: BigInt(fromMinute),
        toMinute: BigInt(toMinute),
      })),
    }),
  );
}

/** True when a receiver takes so much in one upload, before and after it is decoded. */
export function fitsReceiver(bytes: Uint8Array): boolean {
  return bytes.length <= uploadBytesMax && isWithinBounds(uploadBounds, bytes);
}

/** The upload in these protobuf bytes. Throws `telemetry.malformed` for anything a sensor of this contract can't send. */
export function decodeUpload(bytes: Uint8Array): TelemetryUpload {
  return runAtOnce((slice) => decodeUploadSliced(bytes, slice));
}

/**
 * As `decodeUpload`, in slices of bounded work (`decode-slices.ts`). Throws `telemetry.too_large` as well. With `setAside`,
 * rows whose counters can't be true go there; without it, counters that a double can't hold are malformed.
 */
export function* decodeUploadSliced(
  bytes: Uint8Array,
  slice: Slice,
  setAside: SetAside | null = null,
): Sliced<TelemetryUpload> {
  const message = yield* decodeMessage(uploadBounds, bytes, slice);
  if (message.contractVersion !== telemetryContractVersion) {
    throw malformed(`contract_version is ${message.contractVersion}, not ${telemetryContractVersion}`);
  }
  if (!uuidShape.test(message.spoolId)) throw malformed('spool_id is not a UUID in canonical text');
  const sequence = countOf(message.sequence, 'sequence');
  if (sequence < 1) throw malformed('sequence starts at 1');
  const minutes: TelemetryMinute[] = [];
  const gaps = message.gaps.map(decodeGap);
  for (const one of message.minutes) {
    const decoded = yield* decodeMinute(one, slice, setAside);
    if ('hosts' in decoded) minutes.push(decoded);
    else gaps.push(decoded);
  }
  const { inventory, probes, incidents } = message;
  // Bounded by their limits to less than a slice each.
  const others = message.gaps.length + (probes?.probe.length ?? 0) + incidents.length;
  if (slice.isFullFor(others)) yield slice.end();
  slice.add(others);
  const upload: TelemetryUpload = {
    spoolId: message.spoolId,
    sequence,
    sensorVersion: plainText(message.sensorVersion, 32, 'sensor_version'),
    minutes,
    gaps,
    ...(inventory ? { inventory: yield* decodeInventory(inventory, slice) } : {}),
    ...(probes ? { probes: decodeProbes(probes) } : {}),
    ...(incidents.length > 0 ? { incidents: decodeIncidents(incidents) } : {}),
    ...(message.epochs.length > 0 ? { epochs: yield* decodeEpochs(message.epochs, slice) } : {}),
  };
  const seen = new Set<string>();
  for (const { minute, capture } of upload.minutes) {
    const key = `${minute} ${capture}`;
    if (seen.has(key)) throw malformed(`minute ${minute} of capture ${capture} occurs twice`);
    seen.add(key);
  }
  return upload;
}

function encodeMinute(minute: TelemetryMinute): MessageInitShape<typeof CaptureMinuteSchema> {
  return {
    minute: BigInt(minute.minute),
    capture: minute.capture,
    role: roles.toWire[minute.role],
    observedMs: Math.round(minute.observedMs),
    totals: encodeTotals(minute.totals),
    // The monitor attributes traffic to local addresses only; remote ones live in the usage rows.
    hosts: minute.hosts
      .filter((host) => host.isLocal)
      .map((host) => ({
        address: host.address,
        rxBytes: BigInt(host.rxBytes),
        txBytes: BigInt(host.txBytes),
        packets: BigInt(host.packets),
        ...(host.ownScan && {
          ownScanRxBytes: BigInt(host.ownScan.rxBytes),
          ownScanTxBytes: BigInt(host.ownScan.txBytes),
          ownScanPackets: BigInt(host.ownScan.packets),
        }),
        ...(host.dropped && {
          droppedRxBytes: BigInt(host.dropped.rxBytes),
          droppedTxBytes: BigInt(host.dropped.txBytes),
          droppedRxPackets: BigInt(host.dropped.rxPackets),
          droppedTxPackets: BigInt(host.dropped.txPackets),
        }),
        hostDeviceKey: cleanText(host.deviceKey),
      })),
    usage: encodeUsage(minute.usage, minute.minute * 1000),
    ...(minute.detector ? { detector: encodeDetectorMinute(minute.detector) } : {}),
    ...(minute.spoofed?.length ? { spoofed: encodeSpoofed(minute.spoofed) } : {}),
  };
}

/** Hosts between two looks at the slice. */
const hostsAtOnce = 256;

/** The minute, or the gap that stands for it where its totals can't be true. */
function* decodeMinute(
  message: CaptureMinuteMessage,
  slice: Slice,
  setAside: SetAside | null,
): Sliced<TelemetryMinute | TelemetryGap> {
  const minute = minuteOf(message.minute, 'minute');
  const role = roles.fromWire.get(message.role);
  if (!role) throw malformed('role must be uplink or bridge');
  const capture = plainText(message.capture, captureNameMax, 'capture');
  if (capture === '') throw malformed('capture of a minute is blank');
  if (message.observedMs > 60_000) throw malformed('observed_ms is over 60000');
  if (!message.totals) throw malformed('totals are missing');
  if (setAside && !arePlausible(message.totals)) {
    setAside.minutes += 1;
    return { fromMinute: minute, toMinute: minute, capture, reason: 'refused' };
  }
  const totals = decodeTotals(message.totals);
  const hasMergedFrames = (totals.mergedFrames ?? 0) > 0;
  const hosts: TelemetryHost[] = [];
  const addresses = new Set<string>();
  for (const [i, point] of message.hosts.entries()) {
    if (i % hostsAtOnce === 0) {
      if (slice.isFullFor(hostsAtOnce)) yield slice.end();
      slice.add(Math.min(hostsAtOnce, message.hosts.length - i));
    }
    addresses.add(point.address);
    if (setAside && !isHostPlausible(point, hasMergedFrames)) {
      const address = canonicalAddressText(point.address, 'hosts.address');
      setAside.hosts.push({ minute, capture, address });
    } else hosts.push(decodeHost(point));
  }
  if (addresses.size !== message.hosts.length) throw malformed('an address occurs twice in hosts');
  const leftOut = { setAside, hasMergedFrames, rows: 0 };
  const usage = message.usage ? yield* decodeUsage(message.usage, minute * 1000, slice, leftOut) : [];
  // What an application exchanged is known in part only.
  totals.detailTruncated += leftOut.rows;
  const detector = message.detector && (yield* decodeDetectorMinute(message.detector, slice));
  const spoofed = message.spoofed && decodeSpoofed(message.spoofed);
  const { observedMs } = message;
  const observed: TelemetryMinute = { minute, capture, role, observedMs, totals, hosts, usage };
  return { ...observed, ...(detector && { detector }), ...(spoofed && { spoofed }) };
}

function isHostPlausible(point: MetricPointMessage, hasMergedFrames: boolean): boolean {
  const bytes = [looseCount(point.rxBytes), looseCount(point.txBytes)] as const;
  return (
    isPlausible(bytes, looseCount(point.packets), hasMergedFrames) &&
    isOwnScanPart(point) &&
    areDropsPlausible(point)
  );
}

/** The filter counts a frame that offload merged on the way in as one packet. */
const areDropsPlausible = (point: MetricPointMessage): boolean =>
  isPlausible([looseCount(point.droppedRxBytes), 0], looseCount(point.droppedRxPackets), true) &&
  isPlausible([0, looseCount(point.droppedTxBytes)], looseCount(point.droppedTxPackets), true);

/** Own scans are a part of what the address exchanged. */
const isOwnScanPart = (point: MetricPointMessage): boolean =>
  point.ownScanRxBytes <= point.rxBytes &&
  point.ownScanTxBytes <= point.txBytes &&
  point.ownScanPackets <= point.packets &&
  (point.ownScanPackets > 0n || point.ownScanRxBytes + point.ownScanTxBytes === 0n);

function decodeHost(point: MetricPointMessage): TelemetryHost {
  if (!isOwnScanPart(point))
    throw malformed('own scans of hosts are more than the counters that they are a part of');
  return {
    address: canonicalAddressText(point.address, 'hosts.address'),
    isLocal: true,
    rxBytes: countOf(point.rxBytes, 'hosts.rx_bytes'),
    txBytes: countOf(point.txBytes, 'hosts.tx_bytes'),
    packets: countOf(point.packets, 'hosts.packets'),
    ...(point.ownScanPackets > 0n && {
      ownScan: {
        rxBytes: countOf(point.ownScanRxBytes, 'hosts.own_scan_rx_bytes'),
        txBytes: countOf(point.ownScanTxBytes, 'hosts.own_scan_tx_bytes'),
        packets: countOf(point.ownScanPackets, 'hosts.own_scan_packets'),
      },
    }),
    ...(point.droppedRxPackets + point.droppedTxPackets > 0n && {
      dropped: {
        rxBytes: countOf(point.droppedRxBytes, 'hosts.dropped_rx_bytes'),
        txBytes: countOf(point.droppedTxBytes, 'hosts.dropped_tx_bytes'),
        rxPackets: countOf(point.droppedRxPackets, 'hosts.dropped_rx_packets'),
        txPackets: countOf(point.droppedTxPackets, 'hosts.dropped_tx_packets'),
      },
    }),
    deviceKey: plainText(point.hostDeviceKey, 255, 'hosts.host_device_key'),
  };
}

function decodeGap(message: GapMessage): TelemetryGap {
  const fromMinute = minuteOf(message.fromMinute, 'gaps.from_minute');
  const toMinute = minuteOf(message.toMinute, 'gaps.to_minute');
  if (toMinute < fromMinute) throw malformed('a gap ends before it begins');
  const reason = gapReasons.find((known) => known === message.reason);
  if (!reason) throw malformed(`gap reason must be one of ${gapReasons.join(', ')}`);
  const capture = plainText(message.capture, captureNameMax, 'gaps.capture');
  return { fromMinute, toMinute, capture, reason: reason as GapReason };
}
