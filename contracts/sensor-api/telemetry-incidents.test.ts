import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, toBinary } from '@bufbuild/protobuf';
import {
  type DetectorEpoch,
  type DetectorMinute,
  detectorRowsMax,
  type IncidentObservation,
  metrics,
} from './detection.ts';
import {
  type Incident,
  IncidentVectorSchema,
  type IncidentReason as Reason,
  TelemetryUploadSchema,
} from './telemetry_pb.js';
import { decodeUpload, encodeUpload, type TelemetryUpload } from './telemetry-codec.ts';
import { encodeIncident } from './telemetry-incidents.ts';
import { zeroTotals } from './telemetry-totals.ts';

const spoolId = '0193a1f0-0000-7000-8000-000000000001';
const id = '0193a1f0-0000-7000-8000-000000000002';
const second = 1_764_000_000_000;

const incident: IncidentObservation = {
  id,
  revision: 2,
  capture: 'eth0',
  target: { kind: 'host', value: '198.51.100.7' },
  direction: 'inbound',
  class: 'syn_flood',
  severity: 'attack',
  vectors: [{ class: 'syn_flood', packetsShare: 0.97, bytesShare: 0.5, ports: [80, 443] }],
  state: 'active',
  startedAtMs: second,
  detectedAtMs: second + 3000,
  lastObservedAtMs: second + 13_000,
  recoveredAtMs: null,
  current: { bps: 12_000_000, pps: 25_000 },
  peak: { bps: 12_800_000, bpsAtMs: second + 4000, pps: 26_000, ppsAtMs: second + 5000 },
  totals: { bytes: 15_000_000, packets: 250_000 },
  coverage: 'complete',
  deviceKey: 'br0|52:54:00:00:00:01',
  threshold: { metric: 'syn_pps', value: 10_000 },
  remotes: [{ prefix: '203.0.113.0/24', share: 0.25 }],
  seconds: [{ atMs: second + 12_000, bps: 12_000_000, pps: 25_000 }],
  drill: false,
  hasEvidence: true,
  reason: {
    trigger: 'two_of_three',
    ratios: [0.01, 1.85, 2.5],
    all: { packets: 26_000, bytes: 1_600_000 },
    ordinary: [
      { rule: 'pairs', packets: 900, bytes: 520_000 },
      { rule: 'handshakes', packets: 100, bytes: 4000 },
    ],
    pairs: { established: 3, others: 1 },
    remotes: 812,
  },
  filter: {
    matched: { packets: 900_000, bytes: 54_000_000 },
    dropped: { packets: 800_000, bytes: 48_000_000 },
    passed: { packets: 12, bytes: 4000 },
    current: { bps: 12_000_000, pps: 25_000 },
    isDropping: true,
    problem: 'it only counts',
  },
};

const epoch: DetectorEpoch = {
  ...{ id, sinceMs: second, countingRule: 2 },
  prefixes: ['198.51.100.7', '2001:db8::/64'],
};

const detector: DetectorMinute = {
  ticks: 60,
  epochId: id,
  overflowed: 0,
  incidentsLost: 0,
  mergedFrames: 3,
  rows: [
    {
      address: '198.51.100.7',
      direction: 'inbound',
      oneSecond: metrics.map((_, i) => i * 10),
      tenSeconds: metrics.map((_, i) => i),
      attackBytes: 15_000_000,
      attackPackets: 250_000,
    },
  ],
};

const upload = (changes: Partial<TelemetryUpload>): TelemetryUpload => ({
  spoolId,
  sequence: 1,
  sensorVersion: '0.1.23',
  minutes: [],
  gaps: [],
  ...changes,
});

const minuteWith = (one: DetectorMinute) => ({
  minute: second / 1000,
  capture: 'eth0',
  role: 'uplink' as const,
  observedMs: 60_000,
  totals: { ...zeroTotals() },
  hosts: [],
  usage: [],
  detector: one,
});

test('an upload with incidents, epochs and a detector minute comes back as it was', () => {
  const sent = upload({ incidents: [incident], epochs: [epoch] });
  assert.deepEqual(decodeUpload(encodeUpload(sent)), sent);
  const recovered = {
    ...incident,
    state: 'recovered' as const,
    recoveredAtMs: second + 60_000,
    current: null,
  };
  assert.deepEqual(decodeUpload(encodeUpload(upload({ incidents: [recovered] }))).incidents, [recovered]);
  const minutes = decodeUpload(encodeUpload(upload({ minutes: [minuteWith(detector)] }))).minutes;
  assert.deepEqual(minutes[0]!.detector, detector);
});

test('a vector comes back with its times, peak, source ports and IP protocols; one of an older sensor without', () => {
  const details = {
    ...{ sourcePorts: [4096], protocols: [47, 50], startedAtMs: second, lastObservedAtMs: second + 9000 },
    peak: { bps: 12_800_000, pps: 26_000 },
  };
  const older = { class: 'protocol_flood' as const, packetsShare: 0.75, bytesShare: 0.5, ports: [] };
  const vectors = [{ ...older, details }, older];
  const sent = upload({
    incidents: [{ ...incident, class: 'protocol_flood', vectors, isSpoofed: true }],
  });
  assert.deepEqual(decodeUpload(encodeUpload(sent)), sent);
});

test('what an older sensor calls a GRE flood is a protocol flood', () => {
  const message = encodeIncident({ ...incident, class: 'gre_flood' as never });
  const bytes = toBinary(
    TelemetryUploadSchema,
    create(TelemetryUploadSchema, { contractVersion: 1, spoolId, sequence: 1n, incidents: [message] }),
  );
  assert.equal(decodeUpload(bytes).incidents![0]!.class, 'protocol_flood');
});

test('a revision that the database has no room for is malformed', () => {
  const sent = (revision: number) => encodeUpload(upload({ incidents: [{ ...incident, revision }] }));
  assert.equal(decodeUpload(sent(2 ** 31 - 1)).incidents![0]!.revision, 2 ** 31 - 1);
  assert.throws(
    () => decodeUpload(sent(2 ** 31)),
    /Malformed telemetry: incidents\.revision is out of range/,
  );
});

test('a class of a newer sensor is "other", and its metric is left out', () => {
  const message = encodeIncident({ ...incident, class: 'quic_flood' as never });
  message.thresholdMetric = 'quic_pps';
  const bytes = toBinary(
    TelemetryUploadSchema,
    create(TelemetryUploadSchema, { contractVersion: 1, spoolId, sequence: 1n, incidents: [message] }),
  );
  const [decoded] = decodeUpload(bytes).incidents!;
  assert.equal(decoded!.class, 'other');
  assert.equal(decoded!.threshold, null);
});

test('a reason is left out where a newer sensor gives it a rule or a trigger that we do not know, and where an older one gives none', () => {
  const reasonOf = (changes: Partial<Reason> | null) => {
    const message = encodeIncident(incident);
    if (changes) Object.assign(message.reason!, changes);
    else delete message.reason;
    const parts = { contractVersion: 1, spoolId, sequence: 1n, incidents: [message] };
    const bytes = toBinary(TelemetryUploadSchema, create(TelemetryUploadSchema, parts));
    return decodeUpload(bytes).incidents![0]!.reason;
  };
  assert.deepEqual(reasonOf({}), incident.reason);
  assert.equal(reasonOf({ trigger: 'one_of_one' }), undefined);
  assert.equal(reasonOf({ ordinaryRule: ['pairs', 'tunnels'] }), undefined);
  assert.equal(reasonOf(null), undefined);
  for (const bad of [{ ordinaryBytes: [1n] }, { ratios: [1, 1, 1, 1, 1, 1] }])
    assert.throws(() => reasonOf(bad), { code: 'telemetry.malformed' });
});

test('an incident that can not be true is malformed', () => {
  const bad: Record<string, Partial<Incident>> = {
    'no uuid': { id: 'x' },
    'no revision': { revision: 0 },
    'a target that is no address': { target: '198.51.100.007' },
    'a prefix with host bits': { targetKind: 'prefix', target: '198.51.100.7/24' },
    'a target of no kind': { targetKind: 'server' },
    'last observed before its start': { lastObservedAt: BigInt(second - 1) },
    'recovered before its start': { recoveredAt: BigInt(second - 1) },
    'a share over 1': { vectors: [create(IncidentVectorSchema, { packetsShare: 1_000_001 })] },
    'an IP protocol over 255': {
      vectors: [create(IncidentVectorSchema, { details: { protocols: [256] } })],
    },
    'a vector that ended before its start': {
      vectors: [create(IncidentVectorSchema, { details: { startedAt: BigInt(second) } })],
    },
    'a port over 65535': { vectors: [create(IncidentVectorSchema, { ports: [70_000] })] },
    'columns that differ': { remotePrefix: ['203.0.113.0/24'], remoteShare: [] },
    'a counter that no double holds': { bytes: 2n ** 60n },
    'a time after the year 9999': { startedAt: 10n ** 15n },
    'a control character': { deviceKey: 'br0\n' },
  };
  for (const [what, fields] of Object.entries(bad)) {
    const message = Object.assign(encodeIncident(incident), fields);
    const bytes = toBinary(
      TelemetryUploadSchema,
      create(TelemetryUploadSchema, { contractVersion: 1, spoolId, sequence: 1n, incidents: [message] }),
    );
    assert.throws(() => decodeUpload(bytes), { code: 'telemetry.malformed' }, what);
  }
  const twice = upload({ incidents: [incident, incident] });
  assert.throws(() => decodeUpload(encodeUpload(twice)), /occurs twice/);
});

test('a detector minute with too many rows, rows twice or over 60 ticks is malformed', () => {
  const [row] = detector.rows;
  const many = Array.from({ length: detectorRowsMax + 1 }, () => row!);
  for (const one of [
    { ...detector, rows: many },
    { ...detector, rows: [row!, row!] },
    { ...detector, ticks: 61 },
    { ...detector, epochId: 'none' },
  ]) {
    const bytes = encodeUpload(upload({ minutes: [minuteWith(one)] }));
    assert.throws(() => decodeUpload(bytes), { code: 'telemetry.malformed' });
  }
});
