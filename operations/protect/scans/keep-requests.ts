/**
 * The loop beside the calls: makes an automatic request for each new address, expires requests that were not started within
 * 24 hours, and ends those of released addresses.
 *
 * Automatic requests are made only while a monitor fetches requests of their cluster. They count among the pending requests
 * of the account; what does not fit is made later.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import { listScanCandidates, type ScanCandidate } from '#operations/views/index.ts';
import { createLeasedLoop, ifHeld, type Lease, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { isPublic } from './request-scan.ts';
import * as store from './request-store.ts';
import { requestLimits } from './scan-request.ts';

export interface KeepRequestsDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  addresses: Pick<Addresses, 'findAllocations'>;
  isDocumentationGlobal: boolean;
}

/** New addresses that one run looks at. */
const candidatesMax = 1_000;

export function createRequestKeeper(deps: KeepRequestsDeps): LeasedLoop {
  return createLeasedLoop({
    name: 'operations-scan-requests',
    intervalMs: 15_000,
    ttlSeconds: 60,
    ...deps,
    async run(lease, renew) {
      await ifHeld(deps.db(), lease, (tx) => store.expireLapsed(tx, 'all'));
      await endReleased(deps, lease);
      if (await renew()) await requestNew(deps, lease);
    },
  });
}

async function endReleased({ db, addresses }: KeepRequestsDeps, lease: Lease): Promise<void> {
  const ids = await store.listPendingAllocations(db());
  if (ids.length === 0) return;
  const released = (await addresses.findAllocations(ids)).filter(({ releasedAt }) => releasedAt !== null);
  if (released.length === 0) return;
  await ifHeld(db(), lease, (tx) =>
    store.endReleased(
      tx,
      released.map(({ id }) => id),
    ),
  );
}

async function requestNew({ db, isDocumentationGlobal }: KeepRequestsDeps, lease: Lease): Promise<void> {
  const clusterIds = await store.listFetchedClusters(db());
  if (clusterIds?.length === 0) return;
  const found = await listScanCandidates(db(), clusterIds, candidatesMax);
  const byTenant = Map.groupBy(
    found.filter(({ address }) => isPublic(address, isDocumentationGlobal)),
    ({ tenantId }) => tenantId,
  );
  for (const [tenantId, candidates] of byTenant) {
    const held = await ifHeld(db(), lease, (tx) => requestOf(tx, tenantId, candidates));
    if (held === null) return;
  }
}

/** As many as the account has room for. */
async function requestOf(tx: Queryable, tenantId: number, candidates: ScanCandidate[]): Promise<number> {
  await store.lockAccount(tx, tenantId);
  const { pendingOfAccount } = await store.readStanding(tx, { serverId: candidates[0]!.serverId, tenantId });
  const room = Math.max(0, requestLimits.pendingOfAccount - pendingOfAccount);
  return (await store.insertRequests(tx, 'automatic', candidates.slice(0, room))).length;
}
