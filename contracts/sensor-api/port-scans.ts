/**
 * Port scans between a sensor and its monitor: `GET /agent/v1/port-scans` (the plan, read-only authentication, `ETag`)
 * and `POST /agent/v1/port-scans` (what became of an attempt). Rules NET-2.7.2 to NET-2.7.10 and NET-4.k.
 *
 * A report is answered with 200 only when it is stored for good. The same (scan, kind, `at`) may come again: `duplicate`.
 * 400, 413 and 422 mean: never send it again. A monitor without these routes answers 404, and its sensor scans nothing.
 */
import { type Static, Type } from 'typebox';
import { ScanId, ScanProfile, ScanTransport, scanFindings, scanServicesMax } from '../port-scan/index.ts';
import { Count, Id, Nullable, Strict, Timestamp } from '../scalars.ts';

const TargetId = Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9:._-]+$' });

/** Targets of a plan, and open ports of a result (NET-8.5). */
export const scanTargetsMax = 4096;
export const scanReportBytesMax = 8 * 1024 * 1024;

/**
 * One address to scan. `interface` is the host's interface and `source_address` the host's address that scans leave from:
 * the sensor scans only while both are still true (NET-2.7.8). `target_id` names address, server and interface for good.
 */
export const ScanTarget = Type.Object({
  target_id: TargetId,
  address: Type.String({ minLength: 2, maxLength: 45 }),
  interface: Type.String({ minLength: 1, maxLength: 15 }),
  source_address: Type.String({ minLength: 2, maxLength: 45 }),
  vm_id: Id,
  nic_id: Id,
  inventory_at: Timestamp,
});
export type ScanTarget = Static<typeof ScanTarget>;

/** A stored plan never starts a scan: a sensor acts on one that it fetched just now. */
export const ScanPlan = Type.Object({
  plan_version: Type.Literal(1),
  revision: Type.Integer({ minimum: 1, description: 'Grows when anything in the plan changes.' }),
  scan_policy: Type.Optional(
    Type.Object({
      version: Type.Literal(1),
      daily_full_scan_at: Type.String({
        format: 'date-time',
        description: 'The latest scheduled boundary, UTC (NET-2.7.4).',
      }),
    }),
  ),
  targets: Type.Array(ScanTarget, { maxItems: scanTargetsMax }),
  requests: Type.Array(Type.Object({ scan_request_id: ScanId, target_id: TargetId }), {
    maxItems: scanTargetsMax,
    description: 'Full scans that a customer waits for, oldest first.',
  }),
  withdrawn: Type.Array(ScanId, {
    maxItems: scanTargetsMax,
    description: 'Requests that are cancelled: not started, and ended where they run.',
  }),
});
export type ScanPlan = Static<typeof ScanPlan>;

/** Which of a sensor's three groups of scans an attempt belongs to (NET-8.2). */
export const ScanPool = Type.Enum(['hourly', 'daily', 'customer']);
export type ScanPool = Static<typeof ScanPool>;

export const ScanPause = Type.Enum(['cpu', 'memory', 'disk', 'plan']);
export type ScanPause = Static<typeof ScanPause>;

/** The four phases in their order; each transport is discovered and identified apart. */
export const ScanStep = Type.Enum([
  'tcp_discovery',
  'udp_discovery',
  'tcp_identification',
  'udp_identification',
]);
export type ScanStep = Static<typeof ScanStep>;

const attempt = {
  plan_revision: Count,
  scan_id: ScanId,
  scan_request_id: Nullable(ScanId),
  target_id: TargetId,
  at: Timestamp,
};

export const ScanStarted = Strict({
  kind: Type.Literal('started'),
  ...attempt,
  profile: ScanProfile,
  pool: ScanPool,
});
export type ScanStarted = Static<typeof ScanStarted>;

/** Every ten seconds of an attempt, paused or not. */
export const ScanHeartbeat = Strict({
  kind: Type.Literal('heartbeat'),
  ...attempt,
  phase: ScanStep,
  percent: Type.Number({ minimum: 0, maximum: 100, description: 'Of this phase.' }),
  paused_for: Nullable(ScanPause),
  packets_per_second: Type.Optional(
    Type.Number({ minimum: 0, description: 'Sent on the wire, mean since the heartbeat before.' }),
  ),
  found: Type.Optional(
    Type.Array(Strict({ transport: ScanTransport, port: Type.Integer({ minimum: 1, maximum: 65_535 }) }), {
      maxItems: scanServicesMax,
      description: 'Open ports so far.',
    }),
  ),
});
export type ScanHeartbeat = Static<typeof ScanHeartbeat>;

export const ScanResult = Strict({
  kind: Type.Literal('result'),
  ...attempt,
  ...scanFindings,
  packets: Type.Optional(Type.Integer({ minimum: 0, description: 'Sent on the wire.' })),
  pauses: Type.Optional(
    Type.Array(Strict({ reason: ScanPause, started_at: Timestamp, ended_at: Timestamp }), {
      maxItems: 256,
      description: 'The first ones, where there were more.',
    }),
  ),
});
export type ScanResult = Static<typeof ScanResult>;

export const ScanReport = Type.Union([ScanStarted, ScanHeartbeat, ScanResult]);
export type ScanReport = Static<typeof ScanReport>;

export const ScanReceipt = Type.Object({ scan_id: ScanId, receipt: Type.Enum(['accepted', 'duplicate']) });
export type ScanReceipt = Static<typeof ScanReceipt>;
