/**
 * Requests a full scan of all public addresses that a server has now (NET-2.7.1).
 *
 * The server and the account stay locked until the requests are stored, so two clicks in two processes make one set of
 * requests, and the limits hold (NET-8.1). A click while requests are pending answers with these.
 */

import { CodedError } from '#common/errors/index.ts';
import { isGlobalUnicast, parseAddress } from '#common/ip/index.ts';
import { type Actor, forbidden } from '#operations/accounts/index.ts';
import type { Addresses, Allocation } from '#operations/addresses/index.ts';
import { lockLiving } from '#operations/servers/index.ts';
import { listScanCandidates, type ScanCandidate } from '#operations/views/scan-store.ts';
import { record } from '#service-kit/audit/index.ts';
import {
  createLeasedLoop,
  ifHeld,
  type Lease,
  type LeasedLoop,
  type LoopDeps,
} from '#service-kit/leases/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { findSettings } from '../settings/index.ts';
import * as store from './request-store.ts';
import { type RequestRow, requestLimits } from './scan-request.ts';

interface RequestScanDeps {
  db: () => Queryable;
  addresses: Pick<Addresses, 'lockAllocationsOfServer'>;
  isDocumentationGlobal: boolean;
}

export interface RequestScanResult {
  /** Of every address, the new ones and those that were pending. */
  requests: RequestRow[];
  /** False when all were pending. */
  isNew: boolean;
}

/**
 * Throws `port_scans.not_found`, `port_scans.views_off`, `port_scans.not_running`, `port_scans.no_address`,
 * `port_scans.too_many_addresses`, `port_scans.cooldown` (details: `retryAfterSeconds`), `port_scans.limit_exceeded`
 * (details: `limit`, `pending`, `wanted`), `accounts.forbidden`. Customers only.
 */
export async function requestScan(
  deps: RequestScanDeps,
  actor: Actor,
  serverId: number,
): Promise<RequestScanResult> {
  if (actor.kind !== 'customer' || !actor.canWrite)
    throw forbidden('Only the customer requests a port scan of a server.');
  const scope = actor.tenantIds;
  return inTransaction(deps.db(), async (tx) => {
    const server = (await lockLiving(tx, scope, [serverId]))[0];
    if (!server) throw new CodedError('port_scans.not_found', 'There is no such server.');
    const of = { serverId, tenantId: server.tenantId };
    if (!(await findSettings(tx, of)).viewsOn)
      throw new CodedError('port_scans.views_off', 'The protection views of this server are off.');
    await store.lockAccount(tx, of.tenantId);
    await store.expireLapsed(tx, serverId);
    const standing = await store.readStanding(tx, of);
    const addresses = await listPublic(deps, tx, of);
    const running = standing.pending.filter(({ state }) => state === 'running');
    const isAsked = standing.pending.some(({ kind }) => kind === 'manual');
    // Also where automatic scans of all addresses run already.
    if (isAsked || (running.length > 0 && running.length === addresses.length))
      return { requests: standing.pending, isNew: false };
    if (!server.isRunning)
      throw new CodedError('port_scans.not_running', 'The server is not running. Start it, then scan it.');
    checkLimits(standing, addresses.length);
    await store.cancelQueued(tx, 'superseded', { serverId, kind: 'automatic' });
    const requests = await store.insertRequests(tx, 'manual', addresses, {
      ...{ personId: actor.personId, isByKey: actor.keyId !== null },
    });
    await record(tx, actor, {
      operation: 'protect.request_port_scan',
      subject: { kind: 'server', id: serverId, name: server.name },
      tenantId: of.tenantId,
      after: { addresses: requests.map(({ address }) => address) },
    });
    return { requests: [...running, ...requests], isNew: true };
  });
}

/** The addresses that the server has now and that the internet reaches. */
async function listPublic(
  { addresses, isDocumentationGlobal }: RequestScanDeps,
  tx: Queryable,
  { serverId, tenantId }: { serverId: number; tenantId: number },
): Promise<Allocation[]> {
  const all = await addresses.lockAllocationsOfServer(tx, serverId);
  return all.filter((each) => each.tenantId === tenantId && isPublic(each.address, isDocumentationGlobal));
}

function isPublic(address: string, isDocumentationGlobal: boolean): boolean {
  const bytes = parseAddress(address);
  return bytes !== null && isGlobalUnicast(bytes, isDocumentationGlobal);
}

function checkLimits({ pending, pendingOfAccount, cooldownSeconds }: store.Standing, wanted: number): void {
  const { addressesOfServer, pendingOfAccount: limit } = requestLimits;
  if (wanted === 0)
    throw new CodedError('port_scans.no_address', 'The server has no public address to scan.');
  if (wanted > addressesOfServer)
    throw new CodedError(
      'port_scans.too_many_addresses',
      `The server has ${wanted} public addresses. One request scans at most ${addressesOfServer}.`,
      { limit: addressesOfServer, addresses: wanted },
    );
  if (cooldownSeconds > 0)
    throw new CodedError(
      'port_scans.cooldown',
      `A scan of this server was requested less than 10 minutes ago. Try again in ${waitText(cooldownSeconds)}.`,
      { retryAfterSeconds: cooldownSeconds },
    );
  // What is pending of this server are automatic requests, whose place the new ones take.
  const others = pendingOfAccount - pending.length;
  if (others + wanted > limit)
    throw new CodedError(
      'port_scans.limit_exceeded',
      `The account has ${others} addresses waiting for a scan, and ${limit} is the limit. Try again when some are done.`,
      { limit, pending: others, wanted },
    );
}

function waitText(seconds: number): string {
  const minutes = Math.ceil(seconds / 60);
  if (seconds < 60) return `${seconds} s`;
  return minutes === 1 ? '1 minute' : `${minutes} minutes`;
}

interface KeepRequestsDeps extends LoopDeps {
  addresses: Pick<Addresses, 'findAllocations'>;
  isDocumentationGlobal: boolean;
}

/** New addresses that one run looks at. */
const candidatesMax = 1_000;

/**
 * The loop beside the calls: makes an automatic request for each new address, expires requests that were not started within
 * 24 hours, and ends those of released addresses.
 *
 * Automatic requests are made only while a monitor fetches requests of their cluster. They count among the pending requests
 * of the account; what does not fit is made later.
 */
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
