/**
 * The work behind attaching, detaching and syncing.
 *
 * Every job applies the present state of one network interface or network in the database, not the state at the job's creation:
 * so jobs may be killed, repeated and overtaken. The hypervisor is asked without a lock held; afterwards the wish is
 * looked at again, and where it has changed meanwhile the job runs once more.
 */
import { CodedError, describeError } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { findNodeOfServer, type Node } from '#operations/clusters/index.ts';
import { emit } from '#operations/events/index.ts';
import {
  bridgeOf,
  guestName,
  type HypervisorDriver,
  isPermanentRefusal,
  type PrivateInterface,
} from '#operations/hypervisors/index.ts';
import { noteServerChange } from '#operations/server-changes/index.ts';
import { type AttachmentState, findNic, listNicsOf, type Nic } from '#operations/views/network-store.ts';
import { enqueueJob, finishJob, type Job, type JobHandler } from '#service-kit/jobs/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { NetworksDeps } from './index.ts';
import * as store from './store.ts';

interface SyncPayload {
  network_id: number;
  location_id: number;
}

interface NicPayload {
  attachment_id: number;
  network_id: number;
  server_id: number;
  mac_address: string;
}

const attachAttemptsMax = 8;
const syncAttemptsMax = 8;
const removalMs = 60_000;
const hypervisorFault = {
  code: 'hypervisor_failed',
  message: 'The hypervisor did not carry it out. Sync the network to try again, or ask us.',
};

/** Handlers by job kind. */
export function networkJobs(deps: NetworksDeps): Record<string, JobHandler> {
  return {
    'networks.attach': {
      run: (job) => reconcileNic(deps, job),
      attemptsMax: attachAttemptsMax,
      giveUp: (job, error) => failNic(deps, payloadOf(job), error),
    },
    // Never given up: a server that was told to leave a network must not stay on it.
    'networks.detach': { run: (job) => reconcileNic(deps, job) },
    'networks.sync': {
      run: (job) => sync(deps, job),
      attemptsMax: syncAttemptsMax,
      giveUp: (job, error) => failSync(deps, job.payload as SyncPayload, error),
    },
  };
}

async function reconcileNic(deps: NetworksDeps, job: Job): Promise<void> {
  const payload = payloadOf(job);
  const nic = await findNic(deps.db(), payload.attachment_id);
  const isWanted = nic !== null && nic.state !== 'detaching';
  if (isWanted && !nic.isReady) return;
  let requiresReboot = false;
  try {
    ({ requiresReboot } = await applyNic(deps, payload, nic, isWanted));
  } catch (error) {
    if (!isWanted || !isPermanentRefusal(error)) throw error;
    await failNic(deps, payload, (error as Error).message);
    return;
  }
  await inTransaction(deps.db(), async (tx) => {
    if (!(await finishJob(tx, job)))
      throw new CodedError('jobs.overtaken', 'Another worker has taken this job over.');
    const state = await store.lockNicState(tx, payload.attachment_id);
    const isStillWanted = state !== null && state !== 'detaching';
    if (isStillWanted !== isWanted) {
      // The members changed meanwhile, so the NICs attached or detached by this run may be wrong.
      await enqueueJob(tx, isStillWanted ? 'networks.attach' : 'networks.detach', payload);
    } else if (isStillWanted) {
      await store.setNicState(tx, payload.attachment_id, { state: 'attached', requiresReboot });
      if (state !== 'attached') await noteServerChange(tx, payload.server_id, 'network_attached');
    } else if (state === 'detaching') {
      const wasAttached = await store.deleteNic(tx, payload.attachment_id);
      if (wasAttached) await noteServerChange(tx, payload.server_id, 'network_detached');
    }
  });
  deps.wake();
}

async function applyNic(
  deps: NetworksDeps,
  payload: NicPayload,
  nic: Nic | null,
  isWanted: boolean,
): Promise<{ requiresReboot: boolean }> {
  const driver = await driverOf(deps, payload.server_id);
  // A server without room on any node has no guest, and so no network interface.
  if (driver === null) return { requiresReboot: false };
  const guest = guestName(payload.server_id);
  if (isWanted) {
    if (await isSplit(deps, nic!))
      throw new CodedError('hypervisor.refused', 'The network has members on another node.');
    return driver.attachInterface(guest, interfaceOf(nic!));
  }
  await driver.detachInterface(guest, { networkId: payload.network_id, mac: payload.mac_address });
  return { requiresReboot: false };
}

const precedence: readonly AttachmentState[] = ['attached', 'attaching', 'error'];

/**
 * Network interfaces of a network that its earlier members would not reach. A segment that ends at its node must not split the
 * network without an error.
 */
async function findSplit(deps: NetworksDeps, networkId: number): Promise<Set<number>> {
  const nics = (await listMembers(deps, networkId)).toSorted(
    (a, b) => precedence.indexOf(a.state) - precedence.indexOf(b.state) || a.id - b.id,
  );
  const split = new Set<number>();
  let first: Node | null = null;
  for (const nic of nics) {
    const node = await findNodeOfServer(deps.db(), nic.serverId);
    if (node === null) continue;
    first ??= node;
    const leadsOn = (one: Node) =>
      deps.hypervisors.of(one).reach === 'site' || bridgeOf(one, nic.segment) !== null;
    if (node.id !== first.id && !(leadsOn(node) && leadsOn(first))) split.add(nic.id);
  }
  return split;
}

export async function isSplit(deps: NetworksDeps, nic: Nic): Promise<boolean> {
  return (await findSplit(deps, nic.networkId)).has(nic.id);
}

async function failNic(deps: NetworksDeps, payload: NicPayload, error: string): Promise<void> {
  const { attachment_id: id, network_id: network, server_id: server } = payload;
  deps.reporter.error('attaching to a private network failed', { network, server, error });
  await inTransaction(deps.db(), async (tx) => {
    if ((await store.lockNicState(tx, id)) !== 'attaching') return;
    await store.setNicState(tx, id, { state: 'error', error: hypervisorFault });
  });
}

async function sync(deps: NetworksDeps, job: Job): Promise<void> {
  const { network_id: networkId, location_id: locationId } = job.payload as SyncPayload;
  for (;;) {
    const wanted = await store.findSyncWanted(deps.db(), networkId);
    const drivers = await driversOf(deps, locationId);
    if (wanted === null) {
      for (const driver of drivers.values()) await driver.removeNetwork(networkId);
      return;
    }
    const split = await findSplit(deps, networkId);
    const nics = await plugged(deps, networkId);
    await syncDrivers(
      deps,
      networkId,
      drivers,
      nics.filter(({ id }) => !split.has(id)),
    );
    // The hypervisor may have undone a member that joined or left during this run: then the sync runs again.
    if (idsOf(await plugged(deps, networkId)) !== idsOf(nics)) continue;
    const isDone = await inTransaction(deps.db(), async (tx) => {
      const tenantId = await store.finishSync(tx, networkId, wanted, null);
      if (tenantId === null) return false;
      await emit(tx, { type: 'network.synced', networkId, tenantId });
      for (const nic of nics) await settleNic(tx, nic, split.has(nic.id));
      return true;
    });
    if (isDone) return;
  }
}

/** Tells each hypervisor who is on the network there. One that has no member of it may be away: it has nothing to do. */
async function syncDrivers(
  deps: NetworksDeps,
  networkId: number,
  drivers: ReadonlyMap<string, HypervisorDriver>,
  nics: readonly Nic[],
): Promise<void> {
  const members = new Map<string, { guest: string; interface: PrivateInterface }[]>();
  for (const key of drivers.keys()) members.set(key, []);
  for (const nic of nics) {
    const node = await findNodeOfServer(deps.db(), nic.serverId);
    const there = node && members.get(keyOf(deps, node));
    there?.push({ guest: guestName(nic.serverId), interface: interfaceOf(nic) });
  }
  for (const [key, there] of members) {
    try {
      await drivers.get(key)!.syncNetwork(networkId, there);
    } catch (error) {
      if (there.length > 0 || members.size === 1) throw error;
      deps.reporter.warn('a hypervisor without members could not be synced', {
        network: networkId,
        error: describeError(error),
      });
    }
  }
}

/** A network interface that the sync has plugged in is attached, unless its detachment was requested since. */
async function settleNic(tx: Queryable, nic: Nic, isElsewhere: boolean): Promise<void> {
  const state = await store.lockNicState(tx, nic.id);
  if (isElsewhere && (state === 'attaching' || state === 'attached'))
    await store.setNicState(tx, nic.id, { state: 'error', error: hypervisorFault });
  if (isElsewhere || (state !== 'attaching' && state !== 'error')) return;
  await store.setNicState(tx, nic.id, { state: 'attached' });
  await noteServerChange(tx, nic.serverId, 'network_attached');
}

async function failSync(deps: NetworksDeps, payload: SyncPayload, error: string): Promise<void> {
  const networkId = payload.network_id;
  deps.reporter.error('private network sync failed', { network: networkId, error });
  const wanted = await store.findSyncWanted(deps.db(), networkId);
  await inTransaction(deps.db(), async (tx) => {
    // Never given up: nothing of a network that was deleted may stay at a node.
    if (wanted === null) return enqueueJob(tx, 'networks.sync', payload, removalMs);
    const tenantId = await store.finishSync(tx, networkId, wanted, hypervisorFault);
    if (tenantId !== null) await emit(tx, { type: 'network.sync_failed', networkId, tenantId });
  });
}

async function listMembers(deps: NetworksDeps, networkId: number): Promise<Nic[]> {
  return (await listNicsOf(deps.db(), { networkId })).filter((nic) => nic.state !== 'detaching');
}

/** The network interfaces that guests of this network should have now: those of servers that exist at a hypervisor. */
async function plugged(deps: NetworksDeps, networkId: number): Promise<Nic[]> {
  return (await listMembers(deps, networkId)).filter((nic) => nic.isReady);
}

function idsOf(nics: readonly Nic[]): string {
  return nics.map((nic) => nic.id).join();
}

/** A network interface as the drivers know it. */
export function interfaceOf(nic: Nic): PrivateInterface {
  return {
    networkId: nic.networkId,
    segment: nic.segment,
    mac: nic.mac,
    address: nic.address,
    prefixLength: nic.prefixLength,
  };
}

function payloadOf(job: Job): NicPayload {
  return job.payload as NicPayload;
}

/** The hypervisor that a server's guest is on; null for a server that has no room anywhere any more. */
export async function driverOf(deps: NetworksDeps, serverId: number): Promise<HypervisorDriver | null> {
  const node = await findNodeOfServer(deps.db(), serverId);
  return node === null ? null : deps.hypervisors.of(node);
}

/** What a hypervisor stands for: a site with all its nodes, or one node. */
function keyOf(deps: NetworksDeps, node: Node): string {
  const { reach, driver } = deps.hypervisors.of(node);
  return reach === 'site' ? driver : `node ${node.id}`;
}

/** The hypervisors of a location, each once, however many nodes one of them stands for. */
async function driversOf(deps: NetworksDeps, locationId: number): Promise<Map<string, HypervisorDriver>> {
  const clusters = await deps.clusters.listClusters(locationId);
  const nodes = await Promise.all(clusters.map((one) => deps.clusters.listNodes(systemActor, one.id)));
  return new Map(nodes.flat().map((node) => [keyOf(deps, node), deps.hypervisors.of(node)]));
}
