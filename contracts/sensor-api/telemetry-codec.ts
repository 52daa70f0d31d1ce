/**
 * Telemetry between plain data and the bytes of an upload: the sensor encodes, the monitor decodes.
 *
 * Promises: what `encodeUpload` makes, `decodeUpload` takes and gives back equal, whatever text came off the wire
 * (control characters and over-long names are made harmless here, so that a hostile packet can't get a whole minute
 * refused). `decodeUpload` believes nothing: it throws a `CodedError` (`telemetry.malformed`) whose message says
 * what is wrong, and never returns counters that JavaScript can't hold exactly.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { decodeMessage, isWithinBounds, runAtOnce, type Slice, type Sliced } from './decode-slices.ts';
import { uploadBytesMax } from './http.ts';
import {
  captureNameMax,
  type GapReason,
  gapReasons,
  type TelemetryGap,
  type TelemetryHost,
  type TelemetryMinute,
  type TelemetryUpload,
  telemetryContractVersion,
} from './telemetry.ts';
import {
  type CaptureMinute as CaptureMinuteMessage,
  CaptureMinuteSchema,
  CaptureRole,
  type Gap as GapMessage,
  GapSchema,
  type MetricPoint as MetricPointMessage,
  MetricPointSchema,
  TelemetryUploadSchema,
} from './telemetry_pb.js';
import { uploadBounds } from './telemetry-bounds.ts';
import { decodeInventory, encodeInventory } from './telemetry-inventory.ts';
import { decodeProbes, encodeProbes } from './telemetry-probes.ts';
import { decodeTotals, encodeTotals } from './telemetry-totals.ts';
import { decodeUsage, encodeUsage } from './telemetry-usage.ts';
import {
  canonicalAddressText,
  cleanText,
  countOf,
  malformed,
  minuteOf,
  plainText,
  uuidShape,
} from './telemetry-values.ts';

export * from './telemetry.ts';
export * from './upload-encoding.ts';

const roleToWire = { uplink: CaptureRole.UPLINK, bridge: CaptureRole.BRIDGE } as const;

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
      gaps: upload.gaps.map((gap) =>
        create(GapSchema, {
          fromMinute: BigInt(gap.fromMinute),
          toMinute: BigInt(gap.toMinute),
          capture: gap.capture,
          reason: gap.reason,
        }),
      ),
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

/** As `decodeUpload`, in slices of bounded work (`decode-slices.ts`). Throws `telemetry.too_large` as well. */
export function* decodeUploadSliced(bytes: Uint8Array, slice: Slice): Sliced<TelemetryUpload> {
  const message = yield* decodeMessage(uploadBounds, bytes, slice);
  if (message.contractVersion !== telemetryContractVersion) {
    throw malformed(`contract_version is ${message.contractVersion}, not ${telemetryContractVersion}`);
  }
  if (!uuidShape.test(message.spoolId)) throw malformed('spool_id is not a UUID in canonical text');
  const sequence = countOf(message.sequence, 'sequence');
  if (sequence < 1) throw malformed('sequence starts at 1');
  const minutes: TelemetryMinute[] = [];
  for (const minute of message.minutes) minutes.push(yield* decodeMinute(minute, slice));
  const { inventory, probes } = message;
  // Bounded by their limits to less than a slice each.
  const others = message.gaps.length + (probes?.probe.length ?? 0);
  if (slice.isFullFor(others)) yield slice.end();
  slice.add(others);
  const upload: TelemetryUpload = {
    spoolId: message.spoolId,
    sequence,
    sensorVersion: plainText(message.sensorVersion, 32, 'sensor_version'),
    minutes,
    gaps: message.gaps.map(decodeGap),
    ...(inventory ? { inventory: yield* decodeInventory(inventory, slice) } : {}),
    ...(probes ? { probes: decodeProbes(probes) } : {}),
  };
  const seen = new Set<string>();
  for (const { minute, capture } of upload.minutes) {
    const key = `${minute} ${capture}`;
    if (seen.has(key)) throw malformed(`minute ${minute} of capture ${capture} occurs twice`);
    seen.add(key);
  }
  return upload;
}

function encodeMinute(minute: TelemetryMinute): CaptureMinuteMessage {
  return create(CaptureMinuteSchema, {
    minute: BigInt(minute.minute),
    capture: minute.capture,
    role: roleToWire[minute.role],
    observedMs: Math.round(minute.observedMs),
    totals: encodeTotals(minute.totals),
    // The monitor attributes traffic to local addresses only; remote ones live in the usage rows.
    hosts: minute.hosts
      .filter((host) => host.isLocal)
      .map((host) =>
        create(MetricPointSchema, {
          address: host.address,
          rxBytes: BigInt(host.rxBytes),
          txBytes: BigInt(host.txBytes),
          packets: BigInt(host.packets),
          hostDeviceKey: cleanText(host.deviceKey),
        }),
      ),
    usage: encodeUsage(minute.usage, minute.minute * 1000),
  });
}

/** Hosts between two looks at the slice. */
const hostsAtOnce = 256;

function* decodeMinute(message: CaptureMinuteMessage, slice: Slice): Sliced<TelemetryMinute> {
  const minute = minuteOf(message.minute, 'minute');
  const role =
    message.role === CaptureRole.UPLINK ? 'uplink' : message.role === CaptureRole.BRIDGE ? 'bridge' : null;
  if (!role) throw malformed('role must be uplink or bridge');
  const capture = plainText(message.capture, captureNameMax, 'capture');
  if (capture === '') throw malformed('capture of a minute is blank');
  if (message.observedMs > 60_000) throw malformed('observed_ms is over 60000');
  if (!message.totals) throw malformed('totals are missing');
  const totals = decodeTotals(message.totals);
  const hosts: TelemetryHost[] = [];
  const addresses = new Set<string>();
  for (const [i, point] of message.hosts.entries()) {
    if (i % hostsAtOnce === 0) {
      if (slice.isFullFor(hostsAtOnce)) yield slice.end();
      slice.add(Math.min(hostsAtOnce, message.hosts.length - i));
    }
    const host = decodeHost(point);
    addresses.add(host.address);
    hosts.push(host);
  }
  if (addresses.size !== hosts.length) throw malformed('an address occurs twice in hosts');
  const usage = message.usage ? yield* decodeUsage(message.usage, minute * 1000, slice) : [];
  return { minute, capture, role, observedMs: message.observedMs, totals, hosts, usage };
}

function decodeHost(point: MetricPointMessage): TelemetryHost {
  return {
    address: canonicalAddressText(point.address, 'hosts.address'),
    isLocal: true,
    rxBytes: countOf(point.rxBytes, 'hosts.rx_bytes'),
    txBytes: countOf(point.txBytes, 'hosts.tx_bytes'),
    packets: countOf(point.packets, 'hosts.packets'),
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
