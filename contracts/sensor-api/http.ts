/**
 * The JSON half of the sensor API under `/agent/v1`: enrolment, credentials, plan,
 * receipts. Telemetry itself is `telemetry.proto`.
 *
 * Sensors authenticate as hosts with `Authorization: Bearer svcsen_<id>_<secret>` (NET-5.3).
 */

import { type Static, Type } from 'typebox';
import { Strict } from '../scalars.ts';
import { PlanDetection } from './detection.ts';
import { filterRulesMax, PlanFilterRule } from './filter.ts';

export const EnrolRequest = Strict({
  token: Type.String({ minLength: 1, maxLength: 128, description: 'One-time enrolment token.' }),
  host_name: Type.String({ minLength: 1, maxLength: 255 }),
  node: Type.String({
    minLength: 1,
    maxLength: 255,
    description: "The hypervisor node's name in operations.",
  }),
  sensor_version: Type.String({ maxLength: 32 }),
});
export type EnrolRequest = Static<typeof EnrolRequest>;

export const EnrolResponse = Type.Object({
  sensor_id: Type.Integer(),
  site_id: Type.Integer(),
  site_name: Type.String(),
  credential: Type.String({ description: 'Shown once; the sensor stores it with mode 0600.' }),
});
export type EnrolResponse = Static<typeof EnrolResponse>;

/** The answer to `POST /credential`: what the sensor uses from now on. */
export const CredentialResponse = Type.Object({
  credential: Type.String({
    description: 'Shown once; the one that asked is taken until this one was used.',
  }),
  expires_at: Type.String({ description: 'RFC 3339, UTC.' }),
});
export type CredentialResponse = Static<typeof CredentialResponse>;

/** How the credential stands that a plan was fetched with. */
export const PlanCredential = Type.Object({
  expires_at: Type.Union([Type.String(), Type.Null()], {
    description: 'RFC 3339, UTC; null: it has no end.',
  }),
  rotate: Type.Boolean({ description: 'The sensor should ask for another one now.' }),
});
export type PlanCredential = Static<typeof PlanCredential>;

/** A target that sensors measure from their host, described in format.md. */
export const PlanProbe = Type.Object({
  id: Type.Integer({ minimum: 1 }),
  kind: Type.Union([Type.Literal('icmp'), Type.Literal('tcp'), Type.Literal('http'), Type.Literal('dns')]),
  target: Type.String({
    maxLength: 500,
    description: 'Address or host name; the URL of an HTTP probe; the resolver of a DNS probe.',
  }),
  port: Type.Union([Type.Integer({ minimum: 1, maximum: 65_535 }), Type.Null()], {
    description: 'Of TCP and DNS probes.',
  }),
  question: Type.Union([Type.String({ maxLength: 253 }), Type.Null()], {
    description: 'The name that a DNS probe asks the addresses of.',
  }),
  interval_seconds: Type.Integer({ minimum: 1, maximum: 60 }),
  timeout_ms: Type.Integer({ minimum: 100, maximum: 10_000 }),
});
export type PlanProbe = Static<typeof PlanProbe>;

/** Who may send from an address. */
export const PlanOwners = Type.Object({
  address: Type.String({ description: 'Canonical text.' }),
  macs: Type.Array(Type.String(), {
    maxItems: 8,
    description: 'MACs of every interface of the site that has it: lower-case pairs joined by colons.',
  }),
});
export type PlanOwners = Static<typeof PlanOwners>;

/** What a sensor should do, fetched with read-only authentication. */
export const SensorPlan = Type.Object({
  plan_version: Type.Literal(1),
  application_usage_version: Type.Literal(1),
  application_protocol_version: Type.Literal(1),
  local_cidrs: Type.Array(Type.String(), {
    maxItems: 128,
    description: 'Decide which endpoint is local, nothing else.',
  }),
  live_version: Type.Optional(
    Type.Literal(1, { description: 'The monitor takes live windows; missing from older ones.' }),
  ),
  protected_targets: Type.Array(Type.String(), {
    maxItems: 4096,
    description: "Exact addresses of live allocations of the sensor's node.",
  }),
  protected_targets_left_out: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Targets that found no place; missing when all did.' }),
  ),
  owners_version: Type.Optional(
    Type.Literal(2, {
      description:
        'The monitor takes spoofed traffic; of 1 by source address alone. Missing from older ones.',
    }),
  ),
  owners: Type.Optional(Type.Array(PlanOwners, { maxItems: 4096 })),
  probes_version: Type.Optional(
    Type.Literal(1, { description: 'The monitor takes results of probes; missing from older ones.' }),
  ),
  probes: Type.Optional(Type.Array(PlanProbe, { maxItems: 32 })),
  detection_version: Type.Optional(
    Type.Literal(1, {
      description: 'The monitor takes incidents, detector minutes and epochs; missing from older ones.',
    }),
  ),
  detection: Type.Optional(PlanDetection),
  filter_version: Type.Optional(
    Type.Literal(1, { description: 'The monitor takes what filters did; missing from older ones.' }),
  ),
  filter_rules: Type.Optional(Type.Array(PlanFilterRule, { maxItems: filterRulesMax })),
  outbound_filter_rules: Type.Optional(
    Type.Array(PlanFilterRule, {
      maxItems: filterRulesMax,
      description: 'The same against attacks by servers. Sensors that do not know it drop nothing of these.',
    }),
  ),
  credential_version: Type.Optional(
    Type.Literal(1, { description: 'The monitor issues new credentials; missing from older ones.' }),
  ),
  credential: Type.Optional(PlanCredential),
});
export type SensorPlan = Static<typeof SensorPlan>;

/** The answer to a stored upload. `duplicate`: this (sensor, spool, sequence) was stored before. */
export const TelemetryReceipt = Type.Object({
  spool_id: Type.String(),
  sequence: Type.Integer(),
  receipt: Type.Union([Type.Literal('accepted'), Type.Literal('duplicate')]),
  set_aside: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'Rows whose counters can not be true. They are not stored; everything else is.',
    }),
  ),
});
export type TelemetryReceipt = Static<typeof TelemetryReceipt>;

/** The answer to live windows. They are not kept for long, so there is no receipt to wait for. */
export const LiveReceipt = Type.Object({
  stored: Type.Integer({ description: 'Windows that are new.' }),
  duplicates: Type.Integer(),
  too_old: Type.Integer({ description: 'Windows that lie outside the kept history.' }),
});
export type LiveReceipt = Static<typeof LiveReceipt>;

/** 400, 413 and 422 carry this and mean: never send it again. */
export const SensorApiError = Type.Object({
  error: Type.Object({ code: Type.String(), message: Type.String() }),
});
export type SensorApiError = Static<typeof SensorApiError>;

/** The exact refusal of NET-7.1. */
export const retentionRefusalMessage = 'minute telemetry is older than the retention window';

/** The code of a 503 for uploads and live windows that speak of a later time than this: kept until the clock is set. */
export const clockAheadCode = 'clock_ahead';
/** Seconds ahead of the monitor's clock that an upload may speak of. */
export const aheadSecondsMax = 300;

export const uploadBytesMax = 16 * 1024 * 1024;
export const telemetryContentType = 'application/x-protobuf';
