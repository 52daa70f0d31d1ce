/**
 * The admin API under `/api/admin/v1`: operations serves it, the monitor is its client.
 *
 * `Authorization: Bearer svcadm_<id>_<secret>`. Errors have the customer API's body
 * `{error: {code, message, request_id, …}}`: 401 bad token, 403 `permission_missing` with the permission's name in
 * `details`, 413 and 422 for bounds. Unknown fields are refused on requests.
 */
import { type Static, Type } from 'typebox';
import { minuteReasons } from '../minute-reasons.ts';
import { Id, Nullable, Strict, Timestamp } from '../scalars.ts';
import type { AdminContract, FeedContract } from './contract.ts';

const Rate = Nullable(Type.Number({ minimum: 0 }));

/** Only what the project may do appears (NET-4.l). */
export const Discovery = Type.Object({
  project: Type.Object({ id: Id, name: Type.String() }),
  capabilities: Type.Record(Type.String(), Type.Union([Type.Literal(true), Type.Integer()])),
});
export type Discovery = Static<typeof Discovery>;

export const InventoryInterface = Type.Object({
  id: Id,
  mac_address: Type.String(),
  bridge: Nullable(Type.String()),
  vlan: Nullable(Type.Integer()),
  addresses: Type.Array(Type.String()),
});
export const InventoryVm = Type.Object({
  id: Id,
  cluster_id: Id,
  node: Nullable(Type.String()),
  name: Type.String(),
  state: Type.String(),
  updated_at: Timestamp,
  interfaces: Type.Array(InventoryInterface),
});
export type InventoryVm = Static<typeof InventoryVm>;
export const InventoryPage = Type.Object({
  vms: Type.Array(InventoryVm),
  next_after_id: Nullable(Id),
  as_of: Timestamp,
});
export type InventoryPage = Static<typeof InventoryPage>;

/** One active allocation generation (NET-2.3). `assigned_at` is echoed exactly, so it is opaque text to the monitor. */
export const AllocationTarget = Type.Object({
  id: Id,
  billing_account_id: Id,
  virtual_machine_id: Id,
  cluster_id: Id,
  address: Type.String(),
  assigned_at: Timestamp,
});
export type AllocationTarget = Static<typeof AllocationTarget>;
export const TargetsPage = Type.Object({
  targets: Type.Array(AllocationTarget),
  next_after_id: Nullable(Id),
});
export type TargetsPage = Static<typeof TargetsPage>;
export const targetsLimitDefault = 200;
export const targetsLimitMax = 1000;

export const TelemetryApplication = Strict({
  name: Type.String({ minLength: 1, maxLength: 253 }),
  inbound_bytes: Type.Integer({ minimum: 0 }),
  outbound_bytes: Type.Integer({ minimum: 0 }),
  transport: Type.Optional(Nullable(Type.String({ maxLength: 16 }))),
  server_port: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: 65535 }))),
});
export type TelemetryApplication = Static<typeof TelemetryApplication>;

const MinuteReason = Type.Enum([...minuteReasons]);

/** Rates are `bytes * 8 / 60`, not rounded, so that bytes come back exactly. */
export const TelemetryPoint = Strict({
  timestamp: Timestamp,
  inbound_bps: Rate,
  outbound_bps: Rate,
  pps: Rate,
  expected_bps: Rate,
  expected_pps: Rate,
  ddos_bps: Rate,
  ddos_pps: Rate,
  coverage: Nullable(Type.Number({ minimum: 0, maximum: 1 })),
  applications: Type.Array(TelemetryApplication, { maxItems: 20 }),
  reason: Type.Optional(MinuteReason),
  /** The part of the rates that the provider's own port scans caused; absent where there is none. */
  own_scan: Type.Optional(
    Strict({ inbound_bps: Type.Number({ minimum: 0 }), outbound_bps: Type.Number({ minimum: 0 }) }),
  ),
  /** What filters at hypervisors dropped, beside the rates; absent where there is none. */
  dropped: Type.Optional(
    Strict({
      inbound_bps: Type.Number({ minimum: 0 }),
      outbound_bps: Type.Number({ minimum: 0 }),
      inbound_pps: Type.Number({ minimum: 0 }),
      outbound_pps: Type.Number({ minimum: 0 }),
    }),
  ),
});
export type TelemetryPoint = Static<typeof TelemetryPoint>;

export const TelemetryTarget = Strict({
  id: Id,
  address: Type.String(),
  assigned_at: Timestamp,
  series: Type.Array(TelemetryPoint, { maxItems: 60 }),
});
export type TelemetryTarget = Static<typeof TelemetryTarget>;

export const TelemetryRequest = Strict({
  contract_version: Type.Literal(1),
  source_site_id: Id,
  cluster_ids: Type.Array(Id, { maxItems: 100 }),
  targets: Type.Array(TelemetryTarget, { maxItems: 50 }),
});
export type TelemetryRequest = Static<typeof TelemetryRequest>;

export const ReceiptOutcome = Type.Union([
  Type.Literal('accepted'),
  Type.Literal('unchanged'),
  Type.Literal('unmatched'),
  Type.Literal('source_conflict'),
]);
export type ReceiptOutcome = Static<typeof ReceiptOutcome>;
/** What no link carries, so that a minute which says so is set aside: 400 Gbit/s in one direction, for a minute. */
export const linkBpsMax = 400e9;
export const linkMinuteBytesMax = (linkBpsMax / 8) * 60;
export const ppsMax = 1e10;
/** Why a minute was set aside. */
export const SetAsideReason = Type.Union([
  Type.Literal('rate_implausible'),
  Type.Literal('bytes_implausible'),
]);
export type SetAsideReason = Static<typeof SetAsideReason>;

/** Receipts in the order in which the targets were sent; minutes that were not stored are named. */
export const TelemetryReceipts = Type.Object({
  receipts: Type.Array(Type.Object({ id: Id, receipt: ReceiptOutcome })),
  set_aside: Type.Optional(
    Type.Array(Type.Object({ id: Id, timestamp: Timestamp, reason: SetAsideReason }), {
      maxItems: 3000,
      description: 'Minutes that no link carries. They are not stored; everything else of their target is.',
    }),
  ),
});
export type TelemetryReceipts = Static<typeof TelemetryReceipts>;

/** Reading the inventory of servers, and where it is there the list of their changes (`inventory-changes.ts`). */
export const inventoryContract = {
  permission: 'vm_inventory_read',
  required: { vm_inventory: true, vm_inventory_version: 1 },
  optional: { vm_inventory_changes: true, vm_inventory_changes_version: 1 },
} as const satisfies AdminContract;

/** The minute feed (NET-2.4). */
export const minutesContract = {
  permission: 'protect_telemetry_ingest',
  required: { protect_telemetry_ingest: true, protect_telemetry_contract_version: 1 },
  optional: {
    protect_application_identity: true,
    protect_application_identity_version: 1,
    protect_telemetry_reason: true,
    protect_telemetry_reason_version: 1,
    protect_telemetry_own_scan: true,
    protect_telemetry_own_scan_version: 1,
    protect_telemetry_dropped: true,
    protect_telemetry_dropped_version: 1,
  },
  path: '/protect/telemetry/',
  request: TelemetryRequest,
  answer: TelemetryReceipts,
  // 50 targets of 60 minutes with 20 applications each, written out with generous names, are about 11 MB.
  bodyBytesMax: 16 * 1024 * 1024,
} as const satisfies FeedContract;

/** Permissions of admin projects that the specification names, in the order in which they are kept and shown. */
export const projectPermissions: readonly string[] = [
  'vm_inventory_read',
  'ddos_incident_ingest',
  'protect_telemetry_ingest',
  'protect_live_ingest',
  'protect_vulnerability_ingest',
  'protect_port_scan_ingest',
];

/** Each of these permissions lets a project read the allocation targets; a refusal names the first. */
export const targetPermissions = [
  'protect_telemetry_ingest',
  'protect_live_ingest',
  'protect_port_scan_ingest',
  'protect_vulnerability_ingest',
] as const;
