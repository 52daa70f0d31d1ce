/** Adds a network interface to a network whose row is locked, and chooses its address. */
import { CodedError } from '#common/errors/index.ts';
import { findNetwork } from '#operations/views/network-store.ts';
import { isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import type { NetworksDeps } from './index.ts';
import {
  attachmentMac,
  invalidField,
  limitExceeded,
  lowestFreeAddress,
  memberAddress,
  memberCapacity,
  noSuchNetwork,
} from './network.ts';
import * as store from './store.ts';

/** The caller queues what the hypervisor has to do about it. */
export async function addNic(
  tx: Queryable,
  network: store.LockedNetwork,
  server: { serverId: number; locationId: number; ip?: string | undefined },
  ipField: string,
): Promise<{ id: number; networkId: number; serverId: number; mac: string }> {
  requireSameLocation(network, server);
  const ip = await chooseAddress(tx, network, server.ip, ipField);
  const id = await store.nextAttachmentId(tx);
  const mac = attachmentMac(id);
  try {
    await store.insertAttachment(tx, {
      id,
      networkId: network.id,
      serverId: server.serverId,
      ip,
      macAddress: mac,
    });
  } catch (error) {
    // The network's lock makes this impossible; the constraint is the last line behind it.
    if (isUniqueViolation(error, 'network_attachments_ip')) throw ipInUse(ip);
    throw error;
  }
  return { id, networkId: network.id, serverId: server.serverId, mac };
}

function requireSameLocation(network: { locationId: number }, server: { locationId: number }): void {
  if (server.locationId === network.locationId) return;
  throw invalidField('network_id', 'other_location', 'The network is in another location than the server.');
}

/** The wanted address, or the lowest free one. Throws `networks.limit`, `networks.invalid`, `networks.ip_in_use`. */
async function chooseAddress(
  tx: Queryable,
  network: { id: number; cidr: string },
  wanted: string | undefined,
  field: string,
): Promise<string> {
  const taken = await store.listTakenAddresses(tx, network.id);
  if (wanted === undefined) {
    const free = lowestFreeAddress(network.cidr, taken);
    if (free !== null) return free;
    const max = memberCapacity(network.cidr);
    throw limitExceeded(
      'network_members',
      max,
      taken.length,
      `Network ${network.id} (${network.cidr}) has no free address.`,
    );
  }
  const ip = memberAddress(network.cidr, wanted);
  if (ip === null)
    throw invalidField(
      field,
      'not_in_network',
      `must be an address that servers may have in ${network.cidr}: not the first two and not the last`,
    );
  if (taken.includes(ip)) throw ipInUse(ip);
  return ip;
}

function ipInUse(ip: string): CodedError {
  return new CodedError(
    'networks.ip_in_use',
    `${ip} belongs to another server of this network. Choose another address, or name none to be given a free one.`,
  );
}

/** A server that is being ordered. */
export interface JoiningServer {
  serverId: number;
  tenantId: number;
  locationId: number;
}

export interface JoinInput {
  networkId: number;
  /** Absent: the lowest free address of the block. */
  ip?: string | undefined;
}

/**
 * Holds an address of a network for a server that is being ordered, inside the order's transaction. Until
 * `joinHeldNetwork` or `releaseHeldNetwork`, the address is taken and the network stays. Throws as `attachServer` does;
 * a network of another account is `networks.not_found`.
 */
export async function holdNetwork(tx: Queryable, server: JoiningServer, input: JoinInput): Promise<void> {
  const network = await store.lockNetwork(tx, [server.tenantId], input.networkId);
  if (network === null) throw noSuchNetwork();
  requireSameLocation(network, server);
  const ip = await chooseAddress(tx, network, input.ip, 'network_ip');
  await store.insertHold(tx, { networkId: network.id, serverId: server.serverId, ip });
}

/**
 * Joins the server, whose row exists by now, to the network that its order held; its network interface is plugged in
 * when the guest is made.
 */
export async function joinHeldNetwork(tx: Queryable, server: JoiningServer, input: JoinInput): Promise<void> {
  const network = await store.lockNetwork(tx, [server.tenantId], input.networkId);
  if (network === null) throw noSuchNetwork();
  const ip = (await store.takeHold(tx, server.serverId)) ?? input.ip;
  await addNic(tx, network, { ...server, ip }, 'network_ip');
}

/** The rules of `holdNetwork`, without holding anything. */
export async function checkJoin(
  deps: NetworksDeps,
  server: Omit<JoiningServer, 'serverId'>,
  input: JoinInput,
): Promise<void> {
  const network = await findNetwork(deps.db(), [server.tenantId], input.networkId);
  if (network === null) throw noSuchNetwork();
  requireSameLocation(network, server);
  await chooseAddress(deps.db(), network, input.ip, 'network_ip');
}
