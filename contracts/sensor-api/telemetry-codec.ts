/**
 * Telemetry between plain data and the bytes of an upload: the sensor encodes, the monitor decodes.
 *
 * Promises: what `encodeUpload` makes, `decodeUpload` takes and gives back equal, whatever text came off the wire
 * (control characters and over-long names are made harmless here, so that a hostile packet can't get a whole minute
 * refused). `decodeUpload` believes nothing: it throws a `CodedError` (`telemetry.malformed`) whose message says
 * what is wrong, and never returns counters that JavaScript can't hold exactly.
 */
import { gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { CodedError, describeError } from '#common/errors/index.ts';
import { uploadBytesMax } from './http.ts';
import {
  captureMinutesMax,
  captureNameMax,
  type GapReason,
  gapReasons,
  gapsMax,
  hostsMax,
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
  MetricPointSchema,
  TelemetryUploadSchema,
} from './telemetry_pb.js';
import { decodeInventory, encodeInventory } from './telemetry-inventory.ts';
import { decodeProbes, encodeProbes } from './telemetry-probes.ts';
import { decodeTotals, encodeTotals } from './telemetry-totals.ts';
import { decodeUsage, encodeUsage } from './telemetry-usage.ts';
import {
  boundedList,
  canonicalAddressText,
  cleanText,
  countOf,
  malformed,
  minuteOf,
  plainText,
  uuidShape,
} from './telemetry-values.ts';

export * from './telemetry.ts';

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

/** The upload in these protobuf bytes. Throws `telemetry.malformed` for anything a sensor of this contract can't send. */
export function decodeUpload(bytes: Uint8Array): TelemetryUpload {
  let message: ReturnType<typeof create<typeof TelemetryUploadSchema>>;
  try {
    message = fromBinary(TelemetryUploadSchema, bytes);
  } catch (error) {
    throw malformed(`the body is no telemetry upload: ${describeError(error)}`);
  }
  if (message.contractVersion !== telemetryContractVersion) {
    throw malformed(`contract_version is ${message.contractVersion}, not ${telemetryContractVersion}`);
  }
  if (!uuidShape.test(message.spoolId)) throw malformed('spool_id is not a UUID in canonical text');
  const sequence = countOf(message.sequence, 'sequence');
  if (sequence < 1) throw malformed('sequence starts at 1');
  const upload: TelemetryUpload = {
    spoolId: message.spoolId,
    sequence,
    sensorVersion: plainText(message.sensorVersion, 32, 'sensor_version'),
    minutes: boundedList(message.minutes, captureMinutesMax, 'minutes').map(decodeMinute),
    gaps: boundedList(message.gaps, gapsMax, 'gaps').map(decodeGap),
    ...(message.inventory ? { inventory: decodeInventory(message.inventory) } : {}),
    ...(message.probes ? { probes: decodeProbes(message.probes) } : {}),
  };
  const seen = new Set<string>();
  for (const { minute, capture } of upload.minutes) {
    const key = `${minute} ${capture}`;
    if (seen.has(key)) throw malformed(`minute ${minute} of capture ${capture} occurs twice`);
    seen.add(key);
  }
  return upload;
}

/** Values of `Content-Encoding` for an upload, the best first. */
export const uploadEncodings = ['zstd', 'gzip', 'identity'] as const;
export type UploadEncoding = (typeof uploadEncodings)[number];

/** The body of an upload request under this `Content-Encoding`. */
export function compressUpload(bytes: Uint8Array, encoding: UploadEncoding = 'zstd'): Uint8Array {
  if (encoding === 'identity') return bytes;
  return encoding === 'gzip' ? gzipSync(bytes) : zstdCompressSync(bytes);
}

/**
 * The protobuf bytes out of a request body. `encoding` is the value of `Content-Encoding`: zstd, gzip, identity or
 * none. Throws `telemetry.encoding_unsupported`, `telemetry.malformed`, or `telemetry.too_large` when more than
 * `bytesMax` would come out.
 */
export function decompressUpload(
  body: Uint8Array,
  encoding: string | undefined,
  bytesMax: number = uploadBytesMax,
): Uint8Array {
  const limit = { maxOutputLength: bytesMax };
  try {
    switch (encoding?.trim().toLowerCase() ?? 'identity') {
      case 'zstd':
        return zstdDecompressSync(body, limit);
      case 'gzip':
        return gunzipSync(body, limit);
      case 'identity':
      case '':
        break;
      default:
        throw new CodedError(
          'telemetry.encoding_unsupported',
          'Content-Encoding must be zstd, gzip or identity.',
        );
    }
  } catch (error) {
    if (error instanceof CodedError) throw error;
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(bytesMax);
    throw malformed(`the body can't be decompressed: ${describeError(error)}`);
  }
  if (body.byteLength > bytesMax) throw tooLarge(bytesMax);
  return body;
}

function tooLarge(bytesMax: number): CodedError {
  return new CodedError(
    'telemetry.too_large',
    `An upload must not hold more than ${bytesMax} bytes before compression.`,
  );
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

function decodeMinute(message: CaptureMinuteMessage): TelemetryMinute {
  const minute = minuteOf(message.minute, 'minute');
  const role =
    message.role === CaptureRole.UPLINK ? 'uplink' : message.role === CaptureRole.BRIDGE ? 'bridge' : null;
  if (!role) throw malformed('role must be uplink or bridge');
  const capture = plainText(message.capture, captureNameMax, 'capture');
  if (capture === '') throw malformed('capture of a minute is blank');
  if (message.observedMs > 60_000) throw malformed('observed_ms is over 60000');
  if (!message.totals) throw malformed('totals are missing');
  const totals = decodeTotals(message.totals);
  const hosts: TelemetryHost[] = boundedList(message.hosts, hostsMax, 'hosts').map((point) => ({
    address: canonicalAddressText(point.address, 'hosts.address'),
    isLocal: true,
    rxBytes: countOf(point.rxBytes, 'hosts.rx_bytes'),
    txBytes: countOf(point.txBytes, 'hosts.tx_bytes'),
    packets: countOf(point.packets, 'hosts.packets'),
    deviceKey: plainText(point.hostDeviceKey, 255, 'hosts.host_device_key'),
  }));
  if (new Set(hosts.map((host) => host.address)).size !== hosts.length) {
    throw malformed('an address occurs twice in hosts');
  }
  const usage = message.usage ? decodeUsage(message.usage, minute * 1000) : [];
  return { minute, capture, role, observedMs: message.observedMs, totals, hosts, usage };
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
