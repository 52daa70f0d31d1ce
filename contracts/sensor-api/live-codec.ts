/**
 * Live windows between plain data and bytes: the sensor encodes, the monitor decodes.
 *
 * `decodeLive` believes nothing, as `decodeUpload`: it throws a `CodedError` (`telemetry.malformed`) that says what is
 * wrong. Bodies are compressed and decompressed like telemetry uploads.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { decodeMessage, runAtOnce, type Slice, type Sliced } from './decode-slices.ts';
import {
  type CaptureCondition,
  type LiveHost,
  type LiveUpload,
  type LiveWindow,
  liveContractVersion,
  liveWindowMs,
  type SensorCondition,
} from './live.ts';
import {
  LiveUploadSchema,
  type LiveWindow as LiveWindowMessage,
  type SensorCondition as SensorConditionMessage,
} from './live_pb.js';
import { isPlausible, type LiveSetAside, looseCount } from './set-aside.ts';
import { captureNameMax } from './telemetry.ts';
import { CaptureRole } from './telemetry_pb.js';
import { liveBounds } from './telemetry-bounds.ts';
import { arePlausible, decodeTotals, encodeTotals } from './telemetry-totals.ts';
import {
  canonicalAddressText,
  checkColumns,
  countOf,
  malformed,
  momentOf,
  namesOf,
  plainText,
  smallCountOf,
  uuidShape,
} from './telemetry-values.ts';

export * from './live.ts';

const roles = namesOf(CaptureRole);

/** The protobuf bytes of a live upload, not yet compressed. */
export function encodeLive(upload: LiveUpload): Uint8Array {
  return toBinary(
    LiveUploadSchema,
    create(LiveUploadSchema, {
      contractVersion: liveContractVersion,
      runId: upload.runId,
      sensorVersion: upload.sensorVersion,
      ...(upload.condition ? { condition: encodeCondition(upload.condition) } : {}),
      windows: upload.windows.map((window) => ({
        capture: window.capture,
        role: roles.toWire[window.role],
        startedAt: BigInt(window.startedAtMs),
        observedMs: window.observedMs,
        totals: encodeTotals(window.totals),
        hosts: {
          address: window.hosts.map((host) => host.address),
          rxBytes: window.hosts.map((host) => BigInt(host.rxBytes)),
          txBytes: window.hosts.map((host) => BigInt(host.txBytes)),
          packets: window.hosts.map((host) => BigInt(host.packets)),
        },
        hostsLeftOut: window.hostsLeftOut,
      })),
    }),
  );
}

/** The live upload in these protobuf bytes. Throws `telemetry.malformed`. */
export function decodeLive(bytes: Uint8Array): LiveUpload {
  return runAtOnce((slice) => decodeLiveSliced(bytes, slice));
}

/**
 * As `decodeLive`, in slices of bounded work (`decode-slices.ts`). Throws `telemetry.too_large` as well. With `setAside`,
 * counters that can't be true are left out and counted in it.
 */
export function* decodeLiveSliced(
  bytes: Uint8Array,
  slice: Slice,
  setAside: LiveSetAside | null = null,
): Sliced<LiveUpload> {
  const message = yield* decodeMessage(liveBounds, bytes, slice);
  if (message.contractVersion !== liveContractVersion) {
    throw malformed(`contract_version is ${message.contractVersion}, not ${liveContractVersion}`);
  }
  if (!uuidShape.test(message.runId)) throw malformed('run_id is not a UUID in canonical text');
  const windows: LiveWindow[] = [];
  for (const window of message.windows) {
    const rows = window.hosts?.address.length ?? 0;
    if (slice.isFullFor(rows)) yield slice.end();
    slice.add(rows);
    const decoded = decodeWindow(window, setAside);
    if (decoded) windows.push(decoded);
  }
  const keys = new Set(windows.map((window) => `${window.startedAtMs} ${window.capture}`));
  if (keys.size !== windows.length) throw malformed('a window of a capture occurs twice');
  return {
    runId: message.runId,
    sensorVersion: plainText(message.sensorVersion, 32, 'sensor_version'),
    windows,
    ...(message.condition ? { condition: decodeCondition(message.condition) } : {}),
  };
}

function encodeCondition(condition: SensorCondition) {
  return {
    observedAt: BigInt(Math.floor(condition.observedAtMs)),
    spoolPendingBytes: BigInt(condition.spoolPendingBytes),
    spoolBytesMax: BigInt(condition.spoolBytesMax),
    spoolPendingUploads: condition.spoolPendingUploads,
    diskFreeBytes: BigInt(condition.diskFreeBytes),
    diskBytes: BigInt(condition.diskBytes),
    isPaused: condition.isPaused,
    captures: (condition.captures ?? []).map((one) => ({
      name: one.name,
      role: roles.toWire[one.role],
      isListening: one.isListening,
      ...(one.isCountedInKernel === undefined ? {} : { isCountedInKernel: one.isCountedInKernel }),
    })),
  };
}

function decodeCondition(message: SensorConditionMessage): SensorCondition {
  return {
    observedAtMs: momentOf(message.observedAt, 'condition.observed_at'),
    spoolPendingBytes: countOf(message.spoolPendingBytes, 'condition.spool_pending_bytes'),
    spoolBytesMax: countOf(message.spoolBytesMax, 'condition.spool_bytes_max'),
    spoolPendingUploads: smallCountOf(message.spoolPendingUploads, 'condition.spool_pending_uploads'),
    diskFreeBytes: countOf(message.diskFreeBytes, 'condition.disk_free_bytes'),
    diskBytes: countOf(message.diskBytes, 'condition.disk_bytes'),
    isPaused: message.isPaused,
    ...(message.captures.length > 0 ? { captures: decodeCaptures(message) } : {}),
  };
}

function decodeCaptures(message: SensorConditionMessage): CaptureCondition[] {
  return message.captures.map((one) => ({
    name: plainText(one.name, captureNameMax, 'condition.captures.name'),
    role: roles.fromWire.get(one.role) ?? 'uplink',
    isListening: one.isListening,
    ...(one.isCountedInKernel === undefined ? {} : { isCountedInKernel: one.isCountedInKernel }),
  }));
}

/** Null: its totals can't be true, so nothing of it is taken. */
function decodeWindow(message: LiveWindowMessage, setAside: LiveSetAside | null): LiveWindow | null {
  const startedAtMs = countOf(message.startedAt, 'started_at');
  if (startedAtMs % liveWindowMs !== 0) throw malformed('started_at is not on a ten-second boundary');
  if (message.observedMs < 1 || message.observedMs > liveWindowMs) {
    throw malformed('observed_ms is not from 1 to 10000');
  }
  const capture = plainText(message.capture, captureNameMax, 'capture');
  if (capture === '') throw malformed('capture of a window is blank');
  const role = roles.fromWire.get(message.role);
  if (!role) throw malformed('role must be uplink or bridge');
  if (!message.totals) throw malformed('totals are missing');
  if (setAside && !arePlausible(message.totals, message.observedMs)) {
    setAside.rows += 1;
    return null;
  }
  const { hosts, leftOut } = decodeHosts(message, setAside);
  return {
    capture,
    role,
    startedAtMs,
    observedMs: message.observedMs,
    totals: decodeTotals(message.totals),
    hosts,
    hostsLeftOut: smallCountOf(message.hostsLeftOut + leftOut, 'hosts_left_out'),
  };
}

function decodeHosts(
  { hosts, observedMs, totals }: LiveWindowMessage,
  setAside: LiveSetAside | null,
): { hosts: LiveHost[]; leftOut: number } {
  if (!hosts) return { hosts: [], leftOut: 0 };
  const { address, rxBytes, txBytes, packets } = hosts;
  checkColumns('hosts', address.length, [rxBytes, txBytes, packets]);
  if (new Set(address).size !== address.length) throw malformed('an address occurs twice in hosts');
  const hasMergedFrames = (totals?.mergedFrames ?? 0n) > 0n;
  const taken: LiveHost[] = [];
  for (const [i, text] of address.entries()) {
    const canonical = canonicalAddressText(text, 'hosts.address');
    const bytes = [looseCount(rxBytes[i]!), looseCount(txBytes[i]!)] as const;
    if (setAside && !isPlausible(bytes, looseCount(packets[i]!), hasMergedFrames, observedMs)) continue;
    taken.push({
      address: canonical,
      rxBytes: countOf(rxBytes[i]!, 'hosts.rx_bytes'),
      txBytes: countOf(txBytes[i]!, 'hosts.tx_bytes'),
      packets: countOf(packets[i]!, 'hosts.packets'),
    });
  }
  const leftOut = address.length - taken.length;
  if (setAside) setAside.rows += leftOut;
  return { hosts: taken, leftOut };
}
