/**
 * Traffic facts: what captures counted in each minute, and what may be said of it.
 *
 * One interface, so that an engine for many machines can stand beside PostgreSQL; `testing/conformance.ts` is what every
 * engine has to answer alike, to the byte. Facts only ever come in by `append`, which is idempotent by the upload's token,
 * so that an upload counts once; what was uploaded twice under two numbers adds (NET-2.2.9). An engine needs no transaction
 * in common with its caller: PostgreSQL commits facts with the caller's mark, another engine may store them earlier.
 *
 * Four rules are the store's, because only it sees all captures at once:
 * - what a sensor tells of an address that a server of another node had is foreign: kept, shown as such, never counted;
 *   and only captures of the one node that had the server may say that the address was silent;
 * - captures overlap, so of an address and minute one strongest capture counts and never a sum (NET-2.2.10);
 * - of a site's minute and direction one vantage owns the bytes: the uplink for the Internet if it saw any, the bridges
 *   for internal traffic; what the others saw keeps its names and no bytes (NET-2.2.5). Among the owner's captures, of
 *   each local address the strongest counts;
 * - an address's minute belongs to the device that the captures which know one agree on; where they disagree, or where
 *   contributions to one capture's window disagree or do not know, it has no owner (NET-2.2.9).
 *
 * Nothing else is decided here: names come from the catalog that the store is given, silence and gaps are told apart in
 * `traffic/`, views are the applications'. Answers depend on the facts alone, not on the order in which they came nor on
 * what has been rolled up: `rollUp` makes reads cheap and never changes one.
 *
 * `contract/` says what an engine does and holds the rules that engines share, `postgres/` is the default engine, `memory/` the
 * rules once more without any cleverness, which engines are compared with. `clickhouse/` is the engine for more than one machine;
 * `control/` is what engines share of the data that stays in PostgreSQL: captures, gaps, notes of appended uploads, and which engine is in
 * use. `move/` moves facts between engines.
 */

import type { Clock } from '#common/clock/index.ts';
import { describeError, hasCode } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { aheadSecondsMax } from '#contracts/sensor-api/http.ts';
import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
import { ConsumerAway, keptSeconds, type UploadConsumer } from '#monitor/intake/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { openScope } from './contract/control-scope.ts';
import type { FactStore } from './contract/fact-store.ts';
import type { FactUpload } from './contract/facts.ts';

export { type FactsPlace, parseFactsUrl } from './clickhouse/connect.ts';
export { openScope } from './contract/control-scope.ts';
export * from './contract/exploration.ts';
export type { FactEngineState, FactStore } from './contract/fact-store.ts';
export * from './contract/facts.ts';
export {
  type PeerList,
  type PeerOfNetwork,
  type PeerUse,
  peerLengths,
  peerNetworkOf,
} from './contract/peer-networks.ts';
export { createFacts, type FactEngine } from './create-facts.ts';
export type { FactMoveState } from './move/describe-move.ts';
export { deleteFacts, type FactsSide, moveBetween } from './move/move-between.ts';
export { cancelMove } from './move/move-facts.ts';
export { createFactStore } from './postgres/postgres-facts.ts';

const intervalMs = 10_000;
const leaseSeconds = 120;

/**
 * Rolls up hours that have settled, beside the inbox and not within it: an hour of a large site takes seconds. The lease
 * only saves work; two that roll up at once are kept apart by the site's lock.
 */
export function createRollUpLoop(deps: {
  db: () => Queryable;
  facts: Pick<FactStore, 'rollUp'>;
  clock: Clock;
  reporter: Reporter;
}): LeasedLoop {
  const { db, clock, reporter, facts } = deps;
  return createLeasedLoop({
    name: 'roll_up_hours',
    intervalMs,
    ttlSeconds: leaseSeconds,
    db,
    clock,
    reporter,
    // After an upgrade or a long pause there may be hours of work: the lease is kept, and a stop doesn't wait for it.
    run: async (_lease, renew, signal) => {
      await facts.rollUp('settled', async () => !signal.aborted && renew());
    },
  });
}

// Minutes and gaps of uploads on their way into the fact store.

/** Takes `minutes` and `gaps`. A skipped upload becomes a gap over its minutes, so that they never read as zero. */
export function createFactConsumer(
  facts: Pick<FactStore, 'prepare' | 'append' | 'rollUp'>,
): UploadConsumer<FactUpload> {
  return {
    kind: 'facts',
    times: ({ minutes, gaps }) => ({
      observed: minutes.map(({ minute }) => minute),
      mentioned: gaps.map(({ toMinute }) => toMinute),
    }),
    select({ siteId, sensorId, nowMs, upload: { spoolId, sequence, minutes, gaps } }) {
      // Of an upload with some older minutes the others count.
      const kept = minutes.filter(({ minute }) => minute > nowMs / 1000 - keptSeconds);
      if (kept.length + gaps.length === 0) return null;
      const origin = { siteId, sensorId };
      return { origin, token: { spoolId, sequence }, minutes: kept, gaps: withoutFuture(gaps, nowMs) };
    },
    prepare: (uploads) =>
      facts.prepare([...new Set(uploads.flatMap(({ minutes }) => minutes.map(({ minute }) => minute)))]),
    apply: (trx, uploads) => excused(() => facts.append(uploads, openScope(trx))),
    async skip(trx, { siteId, sensorId, spoolId, sequence, firstMinute, lastMinute }) {
      if (firstMinute === null || lastMinute === null) return;
      const gap = { capture: '', fromMinute: firstMinute, toMinute: lastMinute, reason: 'rejected' as const };
      const token = { spoolId, sequence };
      const skipped = { origin: { siteId, sensorId }, token, minutes: [], gaps: [gap] };
      await excused(() => facts.append([skipped], openScope(trx)));
    },
    followUp: () => facts.rollUp('none'),
  };
}

/** An engine that does not answer, or that no longer holds the facts, says nothing of the uploads: they wait. */
async function excused(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (hasCode(error, 'facts.unavailable') || hasCode(error, 'facts.moved'))
      throw new ConsumerAway(describeError(error), error);
    throw error;
  }
}

/** No sensor can know that it will miss a time that has not come, so gaps end now. */
function withoutFuture(gaps: readonly TelemetryGap[], nowMs: number): TelemetryGap[] {
  const lastMinute = Math.floor((nowMs / 1000 + aheadSecondsMax) / 60) * 60;
  return gaps
    .filter((gap) => gap.fromMinute <= lastMinute)
    .map((gap) => ({ ...gap, toMinute: Math.min(gap.toMinute, lastMinute) }));
}
