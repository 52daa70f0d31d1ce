/**
 * Protect traffic: what was observed of customers' addresses, minute by minute, and who may see it.
 *
 * A minute belongs to an allocation generation, never to an address, and is stored exactly once however often it is
 * delivered. Bytes come back as whole numbers, exactly as they were counted; what was not observed stays a gap.
 */
import type { TelemetryReceipts, TelemetryRequest } from '#contracts/admin-api/schemas.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  readApplications,
  readLatest,
  readMinutes,
  readSteps,
  readTraffic,
  type Traffic,
  type TrafficRange,
  type TrafficSubject,
} from './read-traffic.ts';
import { type ReceiveTelemetryDeps, receiveTelemetry, type SenderScope } from './receive-telemetry.ts';
import type { ApplicationRow, LatestRow, MinuteRow, StepRow } from './store.ts';

export { createTrafficRetention } from './jobs.ts';
export type { Traffic, TrafficRange, TrafficSubject } from './read-traffic.ts';
export { hasExactMinutes } from './read-traffic.ts';
export type { ApplicationRow, LatestRow, MinuteRow, SeriesRow, StepRow } from './store.ts';

export interface ProtectTraffic {
  /** Stores what belongs to a generation; throws `protect_traffic.invalid`. One receipt a target, in their order. */
  receive(scope: SenderScope, request: TelemetryRequest): Promise<TelemetryReceipts>;
  read(actor: Actor, subject: TrafficSubject, range: TrafficRange): Promise<Traffic>;
  readSteps(actor: Actor, subject: TrafficSubject, range: TrafficRange): Promise<StepRow[]>;
  readApplications(actor: Actor, subject: TrafficSubject): Promise<ApplicationRow[]>;
  /** By server id: the newest minute of each server that was observed at all. */
  readLatest(actor: Actor, serverIds: readonly number[]): Promise<Map<number, LatestRow>>;
  /** Throws `protect_traffic.range_too_long`. */
  readMinutes(
    actor: Actor,
    subject: TrafficSubject,
    range: { fromMs: number; toMs: number },
  ): Promise<MinuteRow[]>;
}

export interface ProtectTrafficDeps extends ReceiveTelemetryDeps {
  db: () => Queryable;
}

export function createProtectTraffic(deps: ProtectTrafficDeps): ProtectTraffic {
  return {
    receive: (scope, request) => receiveTelemetry(deps, scope, request),
    read: (actor, subject, range) => readTraffic(deps.db(), actor, subject, range),
    readSteps: (actor, subject, range) => readSteps(deps.db(), actor, subject, range),
    readApplications: (actor, subject) => readApplications(deps.db(), actor, subject),
    readLatest: (actor, serverIds) => readLatest(deps.db(), actor, serverIds),
    readMinutes: (actor, subject, range) => readMinutes(deps.db(), actor, subject, range),
  };
}
