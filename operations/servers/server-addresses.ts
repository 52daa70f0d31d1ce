/**
 * Gives kept addresses to servers and takes them away: recorded as an action, carried out by a job.
 *
 * The generation begins with the request and ends when the hypervisor lets the guest send from the address no more, so nothing
 * that the guest sends is another's. What can't be carried out is undone by a job that goes on until it is.
 */

import { CodedError, describeError } from '#common/errors/index.ts';
import {
  addressAttached,
  beginAttachment,
  endAttachments,
  listDetaching,
  listGuestAddresses,
  requireReserved,
  setAddressState,
} from '#operations/addresses/index.ts';
import { emit } from '#operations/events/index.ts';
import { guestName, isPermanentRefusal } from '#operations/hypervisors/index.ts';
import type { ReservedAddress } from '#operations/views/reserved-address-store.ts';
import type { ServerAction } from '#operations/views/server-store.ts';
import { enqueueJob, type Job } from '#service-kit/jobs/index.ts';
import { inTransaction } from '#service-kit/postgres/index.ts';
import { beginAction, findActionRequest } from './action-store.ts';
import { change, type ServerOf } from './change-machine.ts';
import type { ChangeHooks } from './change-server.ts';
import type { ServersDeps } from './index.ts';
import { actionIdOf, endAction, finish, hypervisorOf, serverIdOf } from './job-kit.ts';
import { isCurrent } from './run-power.ts';
import * as store from './store.ts';

/** What such an action asks for. */
export interface MovedAddress {
  addressId: number;
  address: string;
}

/**
 * Throws `addresses.not_found`, `addresses.attached` (details.serverId), `addresses.invalid` (details.field) for a server that can't
 * have it, `servers.unsupported`, and what `changePower` throws. Attached to this server already, it is left alone (`changed: false`).
 */
export function attachAddress(
  deps: ServersDeps,
  of: ServerOf,
  addressId: number,
  hooks: ChangeHooks = {},
): Promise<ServerAction> {
  return change(
    deps,
    of,
    { command: 'attach_address', capability: 'addresses' },
    hooks,
    async (tx, server) => {
      const found = await requireReserved(tx, server.tenantId, addressId);
      const request = requestOf(found);
      if (found.serverId === server.id && found.state === 'attached') return { request, isUnchanged: true };
      if (found.serverId !== null) throw addressAttached(found.serverId);
      const refuse = (message: string) =>
        new CodedError('addresses.invalid', message, { field: 'server_id' });
      if (server.macAddress === null) throw refuse('This server has no public network interface.');
      if (found.clusterId !== server.clusterId)
        throw refuse('The address can’t reach this server: it is elsewhere.');
      await beginAttachment(tx, addressId, server.id);
      return { request };
    },
  );
}

/** Throws `addresses.not_found`, `addresses.available`, `addresses.primary`, and what `attachAddress` throws of servers. */
export async function detachAddress(
  deps: ServersDeps,
  { actor, scope, tenantId }: Omit<ServerOf, 'serverId'> & { tenantId: number },
  addressId: number,
  hooks: ChangeHooks = {},
): Promise<ServerAction> {
  const present = await deps.addresses.findReserved(actor, tenantId, addressId);
  if (present === null) throw new CodedError('addresses.not_found', 'There is no such address.');
  if (present.serverId === null) throw available();
  const of = { actor, scope, serverId: present.serverId };
  return change(
    deps,
    of,
    { command: 'detach_address', capability: 'addresses' },
    hooks,
    async (tx, server) => {
      const found = await requireReserved(tx, tenantId, addressId);
      // It has got another server, or none, since it was looked up.
      if (found.serverId !== server.id || found.state !== 'attached') throw available();
      if (found.isPrimary)
        throw new CodedError(
          'addresses.primary',
          'This is the primary address of its server, and stays with it.',
        );
      await setAddressState(tx, addressId, server.id, 'detaching');
      return { request: requestOf(found) };
    },
  );
}

const requestOf = ({ id, address }: ReservedAddress): MovedAddress => ({ addressId: id, address });
const available = () => new CodedError('addresses.available', 'No server has this address.');

/** Carries an action out: the guest gets what the server has by now. */
export async function runAddresses(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const action = await findActionRequest(deps.db(), actionIdOf(job));
  if (action === null || !(await beginAction(deps.db(), action.actionId))) return;
  const { addressId } = action.request as MovedAddress;
  let gone: number[];
  try {
    gone = await applyAddresses(deps, serverId);
  } catch (error) {
    if (!isPermanentRefusal(error)) throw error;
    return failAddresses(deps, job, describeError(error));
  }
  await finish(deps, job, async (tx) => {
    if (!(await isCurrent(tx, job))) return;
    await endAttachments(tx, serverId, gone);
    if (job.kind === 'servers.attach_address') {
      await setAddressState(tx, addressId, serverId, 'attached');
      await emit(tx, { type: 'address.attached', addressId, serverId });
    }
    await endAction(tx, serverId, {});
  });
}

/** Ends the action; the address leaves the guest by a job of its own, because it may be there by now. */
export async function failAddresses(deps: ServersDeps, job: Job, error: string): Promise<void> {
  const serverId = serverIdOf(job);
  deps.reporter.error('the addresses of a guest could not be changed', { server: serverId, error });
  await inTransaction(deps.db(), async (tx) => {
    if (!(await isCurrent(tx, job))) return;
    const action = await findActionRequest(tx, actionIdOf(job));
    if (action !== null)
      await setAddressState(tx, (action.request as MovedAddress).addressId, serverId, 'detaching');
    await enqueueJob(tx, 'servers.settle_addresses', { server_id: serverId });
    await endAction(tx, serverId, {
      error: {
        code: 'hypervisor_failed',
        message: 'The hypervisor did not carry it out. The address is being detached.',
      },
    });
  });
}

/** Takes away what is being detached, however long the hypervisor is away. */
export async function settleAddresses(deps: ServersDeps, job: Job): Promise<void> {
  const serverId = serverIdOf(job);
  const gone = await applyAddresses(deps, serverId);
  await finish(deps, job, (tx) => endAttachments(tx, serverId, gone));
}

/**
 * Lets the guest have what the server has, again until nothing was changed meanwhile, so that of two jobs the later one holds.
 * Returns the kept addresses that the guest has lost.
 */
async function applyAddresses(deps: ServersDeps, serverId: number): Promise<number[]> {
  const { driver } = await hypervisorOf(deps, serverId);
  const look = () =>
    inTransaction(deps.db(), async (tx) => {
      const server = await store.lockServer(tx, serverId);
      const addresses = await listGuestAddresses(tx, serverId);
      return { server, addresses, detaching: await listDetaching(tx, serverId) };
    });
  for (let wanted = await look(); ; ) {
    const { server, addresses, detaching } = wanted;
    // A server that is destroyed loses all its addresses by that.
    if (server?.provisioningState !== 'ready' || server.macAddress === null) return [];
    await driver.setAddresses({ name: guestName(serverId), mac: server.macAddress, addresses });
    wanted = await look();
    const isSame = JSON.stringify(wanted.addresses) === JSON.stringify(addresses);
    if (isSame && wanted.server?.provisioningState === 'ready') return detaching;
  }
}
