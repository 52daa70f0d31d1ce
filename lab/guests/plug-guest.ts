/** Makes and removes what a running guest is: a namespace with one link into the hypervisor's bridge. */
import { CodedError } from '#common/errors/index.ts';
import { countAddresses } from '../truth/counters.ts';
import { fixedNeighbour, quietSettings } from '../world/build-world.ts';
import { type GuardedPort, guardPort, unguardPort } from '../world/guard.ts';
import { clearFirewall, setFirewall } from '../world/guest-firewall.ts';
import { nameGuestLink, type WorldNames } from '../world/name-world.ts';
import { links, macs } from '../world/networks.ts';
import { nicLink, plugNic, unplugNic } from '../world/private-networks.ts';
import { removeNamespace } from '../world/remove-world.ts';
import { runIp, runTool, writeNetworkSettings } from '../world/run-tool.ts';
import type { GuestAddress, GuestDefinition } from './guest.ts';

/** Plugs the guest in; what an interrupted earlier attempt left is removed first. */
export async function plugGuest(names: WorldNames, guest: GuestDefinition): Promise<void> {
  await unplugGuest(names, guest);
  const namespace = names.guestNamespacePrefix + guest.name;
  await runIp(null, [`netns add ${namespace}`]);
  await writeNetworkSettings(namespace, quietSettings);
  await runIp(namespace, ['link set lo up']);
  // Filtered before the first packet can pass.
  if (guest.firewall !== null) await setFirewall(names, filtered(guest), guest.firewall);
  if (guest.mac !== null) await plugPublicLink(names, guest, guest.mac);
  for (const nic of guest.nics) await plugNic(names, { ...guest, namespace }, nic);
}

async function plugPublicLink(names: WorldNames, guest: GuestDefinition, mac: string): Promise<void> {
  const namespace = names.guestNamespacePrefix + guest.name;
  const link = nameGuestLink(guest.name);
  // Counting starts before the first packet can.
  const addresses = guest.addresses.map((entry) => entry.address);
  await countAddresses(names.hypervisorNamespace, addresses);
  await runIp(names.hypervisorNamespace, [
    `link add ${link} type veth peer name ${links.guest} address ${mac} netns ${namespace}`,
    `link set ${link} gso_max_segs 1 addrgenmode none`,
  ]);
  if (guest.guard === 'on') await guardPort(names, { link, mac, addresses });
  if (guest.speedMbit !== null) await limitSpeed(names, guest);
  await runIp(names.hypervisorNamespace, [
    `link set ${link} master ${links.bridge}`,
    `link set ${link} up`,
    ...addresses.map((address) => fixedNeighbour(address, mac, links.bridge)),
  ]);
  await runTool([
    ...['ip', 'netns', 'exec', names.hypervisorNamespace],
    ...['bridge', 'fdb', 'replace', mac, 'dev', link, 'master', 'static'],
  ]);
  await runIp(namespace, guestLines(guest));
}

/** Limits what the public link of a guest that is on sends and receives, or sets it free. */
export async function limitSpeed(names: WorldNames, { name, speedMbit }: GuestDefinition): Promise<void> {
  // Each end shapes what it sends, so that both directions wait in a queue and none is cut.
  for (const [namespace, device] of [
    [names.hypervisorNamespace, nameGuestLink(name)],
    [names.guestNamespacePrefix + name, links.guest],
  ] as const) {
    const change = (...words: string[]) =>
      runTool([
        'ip',
        'netns',
        'exec',
        namespace,
        'tc',
        'qdisc',
        words[0]!,
        'dev',
        device,
        'root',
        ...words.slice(1),
      ]);
    if (speedMbit !== null) {
      // Ten milliseconds at full speed may leave at once.
      const burst = Math.max(32_000, speedMbit * 1250);
      await change('replace', 'tbf', 'rate', `${speedMbit}mbit`, 'burst', `${burst}`, 'latency', '50ms');
    } else
      await change('delete').catch((error: unknown) => {
        if (!(error instanceof CodedError) || !/handle of zero|No such file/.test(error.message)) throw error;
      });
  }
}

/**
 * Gives a guest that is on its addresses in place of those that it had. Guard and firewall change first, each in one step: it never
 * sends from an address that is not its own, and no address is without its firewall.
 */
export async function changeAddresses(
  names: WorldNames,
  guest: GuestDefinition,
  before: readonly GuestAddress[],
): Promise<void> {
  const has = (list: readonly GuestAddress[], { address }: GuestAddress) =>
    list.some((one) => one.address === address);
  const gone = before.filter((entry) => !has(guest.addresses, entry));
  const added = guest.addresses.filter((entry) => !has(before, entry));
  const mac = guest.mac!;
  await countAddresses(
    names.hypervisorNamespace,
    added.map(({ address }) => address),
  );
  const former = gone.map(({ address }) => address);
  if (guest.firewall !== null) await setFirewall(names, filtered(guest), guest.firewall, former);
  const [port] = portsOf(guest);
  if (guest.guard === 'on') await guardPort(names, port!);
  await runIp(
    names.hypervisorNamespace,
    added.map(({ address }) => fixedNeighbour(address, mac, links.bridge)),
  );
  for (const address of former)
    await runIp(names.hypervisorNamespace, [`neigh delete ${address} dev ${links.bridge}`]).catch(() => {});
  const namespace = names.guestNamespacePrefix + guest.name;
  for (const { address, prefixLength } of gone)
    await runIp(namespace, [`addr delete ${address}/${prefixLength} dev ${links.guest}`]).catch(() => {});
  // Also those that stay: an address may go with the first one of its network.
  await runIp(namespace, guestLines(guest));
}

function guestLines(guest: GuestDefinition): string[] {
  const gateways = new Set(guest.addresses.map((entry) => entry.gateway));
  return [
    `link set ${links.guest} gso_max_segs 1`,
    ...guest.addresses.map((entry) => {
      const noDad = entry.address.includes(':') ? ' nodad' : '';
      return `addr replace ${entry.address}/${entry.prefixLength} dev ${links.guest}${noDad}`;
    }),
    `link set ${links.guest} up`,
    ...[...gateways].map((gateway) => fixedNeighbour(gateway, macs.bridge, links.guest)),
    ...[...gateways].map((gateway) => `route replace default via ${gateway} dev ${links.guest}`),
  ];
}

/** What each of the guest's interfaces may send, and for which private network; null: the public one. */
export function portsOf(guest: GuestDefinition): (GuardedPort & { network: number | null })[] {
  const addresses = guest.addresses.map((entry) => entry.address);
  const publicPort =
    guest.mac === null ? [] : [{ link: nameGuestLink(guest.name), mac: guest.mac, addresses, network: null }];
  return [
    ...publicPort,
    ...guest.nics.map(({ network, mac, address }) => ({
      ...{ link: nicLink(guest.name, network), mac, addresses: [address], network },
    })),
  ];
}

/** What a firewall has to know of its guest. */
export function filtered(guest: GuestDefinition): { name: string; addresses: string[] } {
  return { name: guest.name, addresses: guest.addresses.map((entry) => entry.address) };
}

/** Removes the guest's namespace and link; nothing happens when there is none. */
export async function unplugGuest(names: WorldNames, guest: GuestDefinition): Promise<void> {
  await removeNamespace(names.guestNamespacePrefix + guest.name);
  for (const nic of guest.nics) await unplugNic(names, guest.name, nic.network);
  await clearFirewall(names, filtered(guest));
  // The kernel removes a dead namespace's link some time later; the name must be free for the next one now.
  const link = nameGuestLink(guest.name);
  await runIp(names.hypervisorNamespace, [`link delete ${link}`]).catch((error: unknown) => {
    if (!(error instanceof CodedError) || !/Cannot find device|No such device/.test(error.message))
      throw error;
  });
  await unguardPort(names, link);
  for (const { address } of guest.addresses) {
    await runIp(names.hypervisorNamespace, [`neigh delete ${address} dev ${links.bridge}`]).catch(() => {});
  }
}
