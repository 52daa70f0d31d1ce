/**
 * Puts servers on networks and takes them off. What is decided here is done by a job; the order of locks is always
 * network, then server, so that two callers wait for one another and never for each other's next lock.
 */
import { CodedError } from '#common/errors/index.ts';
import { type Actor, requireWriter } from '#operations/accounts/index.ts';
import {
  type Attachment,
  findNicOf,
  hasServer,
  listAttachments,
  listNicsOf,
  type Nic,
} from '#operations/views/network-store.ts';
import type { Scope } from '#operations/views/scope.ts';
import { record } from '#service-kit/audit/index.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { addNic } from './add-nic.ts';
import type { Precondition } from './change-network.ts';
import type { NetworksDeps } from './index.ts';
import { memberAddress, noSuchNetwork, noSuchServer, scopeOf } from './network.ts';
import * as store from './store.ts';

export interface AttachInput {
  serverId: number;
  networkId: number;
  /** Absent: the lowest free address of the block. */
  ip?: string | undefined;
}

export interface AttachResult {
  attachment: Attachment;
  /** True when the server was on the network already, with this address. */
  wasThere: boolean;
}

/**
 * Throws `networks.not_found`, `networks.server_not_found`, `networks.not_ready`, `networks.already_attached`,
 * `networks.ip_in_use`, `networks.invalid`, `networks.limit`. An interface in error is retried.
 */
export async function attachServer(
  deps: NetworksDeps,
  actor: Actor,
  tenantId: number | null,
  input: AttachInput,
  precondition?: Precondition,
): Promise<AttachResult> {
  const scope = scopeOf(actor, tenantId);
  if (!(await hasServer(deps.db(), scope, input.serverId))) throw noSuchServer();
  requireWriter(actor);
  const wasThere = await inTransaction(deps.db(), async (tx) => {
    const network = await store.lockNetwork(tx, scope, input.networkId);
    if (network === null) throw noSuchNetwork();
    const server = await deps.lockServer(tx, scope, input.serverId);
    if (server === null) throw noSuchServer();
    await precondition?.(tx);
    // A person may reach several accounts; a network serves its own alone.
    if (server.tenantId !== network.tenantId) throw noSuchNetwork();
    if (server.provisioningState !== 'ready')
      throw new CodedError(
        'networks.not_ready',
        'The server is not ready. Wait until it runs, or until it is gone.',
        { isOnItsWay: ['queued', 'provisioning'].includes(server.provisioningState) },
      );
    const present = await findNicOf(tx, network.id, server.id);
    const wasThere =
      present !== null
        ? await keepNic(tx, present, network.cidr, input.ip)
        : await insertNic(tx, network, { serverId: server.id, locationId: server.locationId, ip: input.ip });
    await recordNic(tx, actor, 'network.attach_server', network.tenantId, input);
    return wasThere;
  });
  deps.wake();
  const attachment = await findAttachment(deps, input);
  if (attachment === null) throw noSuchNetwork();
  return { attachment, wasThere };
}

async function keepNic(tx: Queryable, nic: Nic, cidr: string, ip: string | undefined): Promise<boolean> {
  if (nic.state === 'detaching')
    throw new CodedError(
      'networks.detaching',
      'The server is just being detached from this network. Try again in a few seconds.',
    );
  if (ip !== undefined && memberAddress(cidr, ip) !== nic.address)
    throw new CodedError(
      'networks.already_attached',
      `The server is on this network with ${nic.address}. Detach it first to give it another address.`,
      { ip: nic.address },
    );
  if (nic.state === 'error') {
    await store.setNicState(tx, nic.id, { state: 'attaching' });
    await enqueueNic(tx, 'networks.attach', nic);
  }
  return true;
}

async function insertNic(
  tx: Queryable,
  network: store.LockedNetwork,
  server: { serverId: number; locationId: number; ip: string | undefined },
): Promise<false> {
  const nic = await addNic(tx, network, server, 'ip');
  await enqueueNic(tx, 'networks.attach', nic);
  return false;
}

function recordNic(
  tx: Queryable,
  actor: Actor,
  operation: string,
  tenantId: number,
  { serverId, networkId, ip }: AttachInput,
): Promise<void> {
  const subject = { kind: 'server', id: serverId };
  return record(tx, actor, { operation, subject, tenantId, after: { networkId, ip } });
}

/**
 * Takes a server off a network. Throws `networks.not_found` when it is not on it, `networks.last_interface` when nothing
 * else would lead to the server. Asked again while it runs, it answers the same.
 */
export async function detachServer(
  deps: NetworksDeps,
  actor: Actor,
  tenantId: number | null,
  input: { serverId: number; networkId: number },
  precondition?: Precondition,
): Promise<Attachment> {
  const scope = scopeOf(actor, tenantId);
  if (!(await hasServer(deps.db(), scope, input.serverId))) throw noSuchServer();
  if ((await findNicOf(deps.db(), input.networkId, input.serverId)) === null) throw noSuchNetwork();
  requireWriter(actor);
  const before = await inTransaction(deps.db(), (tx) =>
    markDetaching(deps, tx, { actor, scope, input, precondition }),
  );
  deps.wake();
  return before;
}

interface Detaching {
  actor: Actor;
  scope: Scope;
  input: { serverId: number; networkId: number };
  precondition: Precondition | undefined;
}

async function markDetaching(
  deps: NetworksDeps,
  tx: Queryable,
  { actor, scope, input, precondition }: Detaching,
): Promise<Attachment> {
  // The server's lock lets only one of two detachments of its last two networks pass.
  const server = await deps.lockServer(tx, scope, input.serverId);
  if (server === null) throw noSuchServer();
  await precondition?.(tx);
  const [nic, shown] = [
    await findNicOf(tx, input.networkId, input.serverId),
    (await listAttachments(tx, [input.serverId])).find((one) => one.networkId === input.networkId),
  ];
  if (nic === null || shown === undefined) throw noSuchNetwork();
  if (nic.state === 'detaching') return shown;
  if (shown.isLastInterface)
    throw new CodedError(
      'networks.last_interface',
      'This is the last interface of a server without a public address. Attach another network first, or destroy the server.',
    );
  await store.setNicState(tx, nic.id, { state: 'detaching' });
  await enqueueNic(tx, 'networks.detach', nic);
  await recordNic(tx, actor, 'network.detach_server', server.tenantId, input);
  return { ...shown, state: 'detaching', error: null };
}

async function enqueueNic(
  tx: Queryable,
  kind: 'networks.attach' | 'networks.detach',
  nic: { id: number; networkId: number; serverId: number; mac: string },
): Promise<void> {
  await enqueueJob(tx, kind, {
    attachment_id: nic.id,
    network_id: nic.networkId,
    server_id: nic.serverId,
    mac_address: nic.mac,
  });
}

/** Notes that a new guest has these network interfaces; what it lacks is attached by a job, which says why where it can't be. */
export async function settleNics(tx: Queryable, serverId: number, macs: readonly string[]): Promise<void> {
  await store.markAttached(tx, serverId, macs);
  const nics = await listNicsOf(tx, { serverId });
  for (const nic of nics) if (nic.state === 'attaching') await enqueueNic(tx, 'networks.attach', nic);
}

async function findAttachment(
  deps: NetworksDeps,
  of: { serverId: number; networkId: number },
): Promise<Attachment | null> {
  const found = await listAttachments(deps.db(), [of.serverId]);
  return found.find((one) => one.networkId === of.networkId) ?? null;
}
