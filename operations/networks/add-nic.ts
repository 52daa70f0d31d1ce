/** Adds a network interface to a network whose row is locked, and chooses its address. */
import { CodedError } from '#common/errors/index.ts';
import { isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import { invalidField, limitExceeded } from './errors.ts';
import { attachmentMac, lowestFreeAddress, memberAddress, memberCapacity } from './network.ts';
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

export function requireSameLocation(network: { locationId: number }, server: { locationId: number }): void {
  if (server.locationId === network.locationId) return;
  throw invalidField('network_id', 'other_location', 'The network is in another location than the server.');
}

/** The wanted address, or the lowest free one. Throws `networks.limit`, `networks.invalid`, `networks.ip_in_use`. */
export async function chooseAddress(
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
