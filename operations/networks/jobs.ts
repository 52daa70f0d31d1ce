/**
 * The work behind attaching, detaching and syncing.
 *
 * Every job applies the present state of one network interface or network in the database, not the state at the job's creation:
 * so jobs may be killed, repeated and overtaken. The hypervisor is asked without a lock held; afterwards the wish is
 * looked at again, and where it has changed meanwhile the job runs once more.
 */
import { CodedError, describeError } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { findNodeOfServer } from '#operations/clusters/index.ts';
import { emit } from '#operations/events/index.ts';
import {
  guestName,
  type HypervisorDriver,
  isPermanentRefusal,
  type PrivateInterface,
} from '#operations/hypervisors/index.ts';
import { noteServerChange } from '#operations/server-changes/index.ts';
import { findNic, listNicsOf, type Nic } from '#operations/views/index.ts';
import { enqueueJob, finishJob, type Job, type JobHandler } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
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
    // Without end: a server that was told to leave a network must not stay on it.
    'networks.detach': { run: (job) => reconcileNic(deps, job) },
    'networks.sync': {
      run: (job) => sync(deps, job),
      attemptsMax: syncAttemptsMax,
      giveUp: (job, error) => failSync(deps, (job.payload as SyncPayload).network_id, error),
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
  await deps
    .db()
    .transaction()
    .execute(async (tx) => {
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
    if (driver.segmentReach === 'node') await requireOneNode(deps, nic!);
    return driver.attachInterface(guest, interfaceOf(nic!));
  }
  await driver.detachInterface(guest, { networkId: payload.network_id, mac: payload.mac_address });
  return { requiresReboot: false };
}

/** A segment that ends at its node would split the network without an error, so the interface fails instead. */
async function requireOneNode(deps: NetworksDeps, nic: Nic): Promise<void> {
  const here = (await findNodeOfServer(deps.db(), nic.serverId))?.id;
  for (const other of await plugged(deps, nic.networkId)) {
    if (other.serverId === nic.serverId) continue;
    if ((await findNodeOfServer(deps.db(), other.serverId))?.id !== here)
      throw new CodedError('hypervisor.refused', 'The network has members on another node.');
  }
}

async function failNic(deps: NetworksDeps, payload: NicPayload, error: string): Promise<void> {
  const { attachment_id: id, network_id: network, server_id: server } = payload;
  deps.reporter.error('attaching to a private network failed', { network, server, error });
  await deps
    .db()
    .transaction()
    .execute(async (tx) => {
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
      for (const driver of drivers) await driver.removeNetwork(networkId);
      return;
    }
    const nics = await plugged(deps, networkId);
    await syncDrivers(deps, networkId, drivers, nics);
    // The hypervisor may have undone a member that joined or left during this run: then the sync runs again.
    if (idsOf(await plugged(deps, networkId)) !== idsOf(nics)) continue;
    const isDone = await inTransaction(deps, async (tx) => {
      const tenantId = await store.finishSync(tx, networkId, wanted, null);
      if (tenantId === null) return false;
      await emit(tx, { type: 'network.synced', networkId, tenantId });
      for (const nic of nics) await settleNic(tx, nic);
      return true;
    });
    if (isDone) return;
  }
}

/** Tells each hypervisor who is on the network there. One that has no member of it may be away: it has nothing to do. */
async function syncDrivers(
  deps: NetworksDeps,
  networkId: number,
  drivers: ReadonlySet<HypervisorDriver>,
  nics: readonly Nic[],
): Promise<void> {
  const members = new Map<HypervisorDriver, { guest: string; interface: PrivateInterface }[]>();
  for (const driver of drivers) members.set(driver, []);
  for (const nic of nics) {
    const driver = await driverOf(deps, nic.serverId);
    if (driver === null) continue;
    const there = members.get(driver) ?? [];
    there.push({ guest: guestName(nic.serverId), interface: interfaceOf(nic) });
    members.set(driver, there);
  }
  for (const [driver, there] of members) {
    try {
      await driver.syncNetwork(networkId, there);
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
async function settleNic(tx: Queryable, nic: Nic): Promise<void> {
  const state = await store.lockNicState(tx, nic.id);
  if (state !== 'attaching' && state !== 'error') return;
  await store.setNicState(tx, nic.id, { state: 'attached' });
  await noteServerChange(tx, nic.serverId, 'network_attached');
}

async function failSync(deps: NetworksDeps, networkId: number, error: string): Promise<void> {
  deps.reporter.error('private network sync failed', { network: networkId, error });
  const wanted = await store.findSyncWanted(deps.db(), networkId);
  if (wanted === null) return;
  await inTransaction(deps, async (tx) => {
    const tenantId = await store.finishSync(tx, networkId, wanted, hypervisorFault);
    if (tenantId !== null) await emit(tx, { type: 'network.sync_failed', networkId, tenantId });
  });
}

/** The network interfaces that guests of this network should have now: those of servers that exist at a hypervisor. */
async function plugged(deps: NetworksDeps, networkId: number): Promise<Nic[]> {
  const nics = await listNicsOf(deps.db(), { networkId });
  return nics.filter((nic) => nic.state !== 'detaching' && nic.isReady);
}

function idsOf(nics: readonly Nic[]): string {
  return nics.map((nic) => nic.id).join();
}

/** A network interface as the drivers know it. */
export function interfaceOf(nic: Nic): PrivateInterface {
  return {
    networkId: nic.networkId,
    mac: nic.mac,
    address: nic.address,
    prefixLength: nic.prefixLength,
  };
}

function inTransaction<T>(deps: NetworksDeps, work: (tx: Queryable) => Promise<T>): Promise<T> {
  return deps.db().transaction().execute(work);
}

function payloadOf(job: Job): NicPayload {
  return job.payload as NicPayload;
}

/** The hypervisor that a server's guest is on; null for a server that has no room anywhere any more. */
export async function driverOf(deps: NetworksDeps, serverId: number): Promise<HypervisorDriver | null> {
  const node = await findNodeOfServer(deps.db(), serverId);
  return node === null ? null : deps.hypervisors.of(node);
}

/** The hypervisors of a location, each once, however many nodes one of them stands for. */
async function driversOf(deps: NetworksDeps, locationId: number): Promise<Set<HypervisorDriver>> {
  const clusters = await deps.clusters.listClusters(locationId);
  const nodes = await Promise.all(clusters.map((one) => deps.clusters.listNodes(systemActor, one.id)));
  return new Set(nodes.flat().map((node) => deps.hypervisors.of(node)));
}
