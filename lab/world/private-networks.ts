/**
 * The segments of private networks: a bridge each, without an address of the hypervisor, so that nothing is routed
 * between them and two networks with the same block never meet.
 *
 * A NIC is guarded as the public link is.
 */
import { createHash } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import { guardPort, unguardPort } from './guard.ts';
import type { WorldNames } from './name-world.ts';
import { runIp, runTool } from './run-tool.ts';

export interface PrivateNic {
  /** The network's id; names its segment. */
  network: number;
  mac: string;
  /** IPv4. */
  address: string;
  prefixLength: number;
}

/** Largest id whose link name fits into the kernel's 15 characters. */
export const networkIdMax = 999_999_999_999;

/** The segment's bridge in the hypervisor, and the NIC's name inside its guest. */
export function segmentLink(network: number): string {
  return `pn${network}`;
}

/** The NIC's link in the hypervisor. */
export function nicLink(guest: string, network: number): string {
  return `pv-${createHash('sha256').update(`${guest} ${network}`).digest('hex').slice(0, 8)}`;
}

/** Plugs the NIC into a guest that is on; what an interrupted earlier attempt left is removed first. */
export async function plugNic(
  names: WorldNames,
  guest: { name: string; namespace: string; guard: 'on' | 'off' },
  nic: PrivateNic,
): Promise<void> {
  await unplugNic(names, guest.name, nic.network);
  await ensureSegment(names, nic.network);
  const link = nicLink(guest.name, nic.network);
  const inside = segmentLink(nic.network);
  await runIp(names.hypervisorNamespace, [
    `link add ${link} type veth peer name ${inside} address ${nic.mac} netns ${guest.namespace}`,
    `link set ${link} gso_max_segs 1 addrgenmode none`,
  ]);
  if (guest.guard === 'on') await guardPort(names, { link, mac: nic.mac, addresses: [nic.address] });
  await runIp(names.hypervisorNamespace, [
    `link set ${link} master ${segmentLink(nic.network)}`,
    `link set ${link} up`,
  ]);
  await runIp(guest.namespace, [
    `link set ${inside} gso_max_segs 1 addrgenmode none`,
    `addr add ${nic.address}/${nic.prefixLength} dev ${inside}`,
    `link set ${inside} up`,
  ]);
}

/** Takes the NIC away; nothing happens when there is none. */
export async function unplugNic(names: WorldNames, guest: string, network: number): Promise<void> {
  const link = nicLink(guest, network);
  await deleteLink(names, link);
  await unguardPort(names, link);
}

/** True when the NIC's link stands on its segment. */
export async function isPlugged(names: WorldNames, guest: string, network: number): Promise<boolean> {
  const output = await runTool([
    ...['ip', '-n', names.hypervisorNamespace, '-o', 'link', 'show'],
    ...['master', segmentLink(network)],
  ]).catch(() => '');
  return output.includes(` ${nicLink(guest, network)}@`);
}

/** Removes the segment; nothing happens when there is none. */
export function removeSegment(names: WorldNames, network: number): Promise<void> {
  return deleteLink(names, segmentLink(network));
}

/** Makes the segment unless it stands. */
export async function ensureSegment(names: WorldNames, network: number): Promise<void> {
  const bridge = segmentLink(network);
  await runIp(names.hypervisorNamespace, [
    `link add ${bridge} type bridge stp_state 0 mcast_snooping 0`,
    `link set ${bridge} gso_max_segs 1 addrgenmode none`,
    `link set ${bridge} up`,
  ]).catch((error: unknown) => {
    if (!(error instanceof CodedError) || !/File exists/.test(error.message)) throw error;
  });
}

async function deleteLink(names: WorldNames, link: string): Promise<void> {
  await runIp(names.hypervisorNamespace, [`link delete ${link}`]).catch((error: unknown) => {
    if (!(error instanceof CodedError) || !/Cannot find device|No such device/.test(error.message))
      throw error;
  });
}
