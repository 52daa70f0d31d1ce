/**
 * Live traffic of customers' addresses: the last hour in buckets of ten seconds, and who may see it.
 *
 * A bucket belongs to an allocation generation and is one row however often it is delivered. What was not observed is
 * absent. Live traffic never decides who owns the minutes of a generation, and a crash of the database may lose it.
 */

import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type Actor, forbidden, reachesTenant } from '#operations/accounts/index.ts';
import { createExpiryLoop } from '#service-kit/leases/index.ts';
import type { TrafficSubject } from '../traffic/index.ts';
import type { ProtectLive } from './protect-live.ts';
import { type ReceiveLiveDeps, receiveLive } from './receive-live.ts';
import * as store from './store.ts';

export { createLiveReceiver } from './live-receiver.ts';
export type { ProtectLive } from './protect-live.ts';
export type { LiveRow, LiveStatus } from './store.ts';

export interface ProtectLiveDeps extends ReceiveLiveDeps {
  clock: Clock;
  reporter: Reporter;
}

export function createProtectLive(deps: ProtectLiveDeps): ProtectLive {
  const { db, clock, reporter } = deps;
  const retention = createExpiryLoop({
    ...{ name: 'operations-live-retention', db, clock, reporter },
    deleteExpired: store.deleteExpired,
  });
  return {
    work: { parts: [retention] },
    receive: (scope, request) => receiveLive(deps, scope, request),
    read: async (actor, subject, fromMs) => store.listBuckets(db(), scopeOf(actor, subject), fromMs),
    readStatus: async (actor, subject) => store.readStatus(db(), scopeOf(actor, subject)),
  };
}

/** The rows are filtered by tenant and server in the query as well. */
function scopeOf(actor: Actor, subject: TrafficSubject): store.LiveScope {
  if (!reachesTenant(actor, subject.tenantId)) throw forbidden('This server belongs to another account.');
  return { serverId: subject.serverId, tenantId: subject.tenantId, address: subject.address ?? null };
}
