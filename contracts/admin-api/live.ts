/** The live feed (NET-2.5): completed ten-second buckets of exact addresses. */
import { type Static, Type } from 'typebox';
import { Id, Nullable, Strict, Timestamp } from '../scalars.ts';
import type { FeedContract } from './contract.ts';
import { TelemetryReceipts } from './schemas.ts';

const Rate = Nullable(Type.Number({ minimum: 0 }));

/** Seconds of a bucket. */
export const liveBucketSeconds = 10;
/** Buckets of one target, and targets of one request (NET-8). */
export const liveBucketsMax = 30;
export const liveTargetsMax = 10;

/** Expected and attack rates are always null in this feed (NET-2.5.2). */
export const LivePoint = Strict({
  timestamp: Timestamp,
  inbound_bps: Rate,
  outbound_bps: Rate,
  pps: Rate,
  expected_bps: Type.Null(),
  expected_pps: Type.Null(),
  ddos_bps: Type.Null(),
  ddos_pps: Type.Null(),
  coverage: Nullable(Type.Number({ minimum: 0, maximum: 1 })),
  observed_seconds: Type.Number({ exclusiveMinimum: 0, maximum: liveBucketSeconds }),
});
export type LivePoint = Static<typeof LivePoint>;

export const LiveRequest = Strict({
  contract_version: Type.Literal(1),
  source_site_id: Id,
  cluster_ids: Type.Array(Id, { maxItems: 100 }),
  targets: Type.Array(
    Strict({
      id: Id,
      address: Type.String(),
      assigned_at: Timestamp,
      series: Type.Array(LivePoint, { maxItems: liveBucketsMax }),
    }),
    { maxItems: liveTargetsMax },
  ),
});
export type LiveRequest = Static<typeof LiveRequest>;

export const LiveReceipts = Type.Pick(TelemetryReceipts, ['receipts']);
export type LiveReceipts = Static<typeof LiveReceipts>;

export const liveContract = {
  permission: 'protect_live_ingest',
  required: { protect_live_ingest: true, protect_live_contract_version: 1 },
  path: '/protect/live/',
  request: LiveRequest,
  answer: LiveReceipts,
  bodyBytesMax: 8 * 1024 * 1024,
} as const satisfies FeedContract;
