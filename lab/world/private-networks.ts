/**
 * The segments of private networks: a bridge each, without an address of the hypervisor, so that nothing is routed
 * between them and two networks with the same block never meet.
 *
 * A NIC sends only what carries its own MAC and address: what a guest makes up is dropped at its link.
 */
import { createHash } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
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

/** Rules for `nft -f`: whose NIC may send what. */
export const nicRules = `table bridge private {
  set macs {
    type ifname . ether_addr
  }
  set addresses {
    type ifname . ipv4_addr
  }
  chain arriving {
    type filter hook prerouting priority -300
    policy accept
    iifname "pv-*" jump sent
  }
  chain sent {
    iifname . ether saddr != @macs drop
    ether type arp iifname . arp saddr ip != @addresses drop
    ether type arp accept
    ether type ip iifname . ip saddr != @addresses drop
    ether type ip accept
    drop
  }
}`;

/** Plugs the NIC into a guest that is on; what an interrupted earlier attempt left is removed first. */
export async function plugNic(
  names: WorldNames,
  guest: { name: string; namespace: string },
  nic: PrivateNic,
): Promise<void> {
  await unplugNic(names, guest.name, nic.network);
  await ensureSegment(names, nic.network);
  const link = nicLink(guest.name, nic.network);
  const inside = segmentLink(nic.network);
  await nft(names, [
    `add element bridge private macs { "${link}" . ${nic.mac} }`,
    `add element bridge private addresses { "${link}" . ${nic.address} }`,
  ]);
  await runIp(names.hypervisorNamespace, [
    `link add ${link} type veth peer name ${inside} address ${nic.mac} netns ${guest.namespace}`,
    `link set ${link} gso_max_segs 1 addrgenmode none`,
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
  for (const set of ['macs', 'addresses']) {
    const output = await runTool([
      ...['ip', 'netns', 'exec', names.hypervisorNamespace],
      ...['nft', '-j', 'list', 'set', 'bridge', 'private', set],
    ]);
    const mine = elementsOf(output).filter(([owner]) => owner === link);
    if (mine.length === 0) continue;
    const elements = mine.map(([owner, value]) => `"${owner}" . ${value}`);
    await nft(names, [`delete element bridge private ${set} { ${elements.join(', ')} }`]);
  }
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
    if (!(error instanceof CodedError) || !/Cannot find device/.test(error.message)) throw error;
  });
}

async function nft(names: WorldNames, lines: readonly string[]): Promise<void> {
  await runTool(
    ['ip', 'netns', 'exec', names.hypervisorNamespace, 'nft', '-f', '-'],
    `${lines.join('\n')}\n`,
  );
}

/** The pairs of a set as `nft -j` lists them. */
function elementsOf(json: string): [string, string][] {
  const objects = (JSON.parse(json) as { nftables: { set?: { elem?: { concat: [string, string] }[] } }[] })
    .nftables;
  return objects.flatMap(({ set }) => (set?.elem ?? []).map((element) => element.concat));
}
