/**
 * Live traffic of customers' addresses: the last hour in buckets of ten seconds, and who may see it.
 *
 * A bucket belongs to an allocation generation and is one row however often it is delivered. What was not observed is
 * absent. Live traffic never decides who owns the minutes of a generation, and a crash of the database may lose it.
 */

import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { LiveRequest } from '#contracts/admin-api/live.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import { createExpiryLoop } from '#service-kit/leases/index.ts';
import { type AddressSubject, reachedAddress } from '../subject.ts';
import { type ReceiveLiveDeps, receiveLive } from './receive-live.ts';
import * as store from './store.ts';

export function createProtectLive(deps: ReceiveLiveDeps & { clock: Clock; reporter: Reporter }) {
  const { db, clock, reporter } = deps;
  const retention = createExpiryLoop({
    ...{ name: 'operations-live-retention', db, clock, reporter },
    deleteExpired: store.deleteExpired,
  });
  return {
    /** What it does beside the calls. */
    work: { parts: [retention] } satisfies FeatureWork,
    /** Stores what belongs to a generation; throws `protect_live.invalid`. One receipt a target, in their order. */
    receive: (scope: Sender, request: LiveRequest) => receiveLive(deps, scope, request),
    /** Buckets of a server that began at or after this time, in time order. */
    read: async (actor: Actor, subject: AddressSubject, fromMs: number) =>
      store.listBuckets(db(), reachedAddress(actor, subject), fromMs),
    /** How the delivery of a server's live traffic stands (NET-4.10). */
    readStatus: async (actor: Actor, subject: AddressSubject) =>
      store.readStatus(db(), reachedAddress(actor, subject)),
  };
}

export type ProtectLive = ReturnType<typeof createProtectLive>;
