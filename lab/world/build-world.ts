/**
 * Makes a world's fixed part: hypervisor, internet, the links between them, counters and the guard.
 *
 * No namespace has a route to the host's networks. The management link is reached from the hypervisor only, on the
 * forwarded ports only; guests are refused there even though the hypervisor routes for them.
 *
 * Segmentation offload is switched off by `gso_max_segs 1` on every link, so that each packet on the wire is what
 * captures and counters see. Neighbours are fixed: address resolution would put packets with guests' own addresses
 * on the bridge that never reach the uplink, and the two captures would disagree about a guest's bytes.
 */
import { networkInterfaces } from 'node:os';
import { CodedError } from '#common/errors/index.ts';
import { formatPrefix } from '#common/ip/index.ts';
import { serviceAddresses } from '../traffic/internet-plan.ts';
import { truthRules } from '../truth/counters.ts';
import type { WorldNames } from './name-world.ts';
import { attackSources, lanNetworks, links, macs, wan } from './networks.ts';
import { runIp, runTool, writeNetworkSettings } from './run-tool.ts';

/** Settings of every namespace: no automatic addresses, no detection of duplicates, no surprises. */
export const quietSettings: Readonly<Record<string, string>> = {
  'ipv6/conf/all/accept_ra': '0',
  'ipv6/conf/default/accept_ra': '0',
  'ipv6/conf/all/accept_dad': '0',
  'ipv6/conf/default/accept_dad': '0',
  'ipv6/conf/default/router_solicitations': '0',
  'ipv4/conf/all/rp_filter': '0',
  'ipv4/conf/default/rp_filter': '0',
  'ipv4/conf/all/send_redirects': '0',
  'ipv4/conf/default/send_redirects': '0',
};

/** Builds the world; nothing of it may stand already. `forwards` are the TCP ports of the host's end that the hypervisor may call. */
export async function buildWorld(names: WorldNames, forwards: readonly number[]): Promise<void> {
  refuseTakenAddress(names);
  await runIp(null, [`netns add ${names.hypervisorNamespace}`, `netns add ${names.internetNamespace}`]);
  await writeNetworkSettings(names.hypervisorNamespace, {
    ...quietSettings,
    'ipv4/ip_forward': '1',
    'ipv6/conf/all/forwarding': '1',
  });
  await writeNetworkSettings(names.internetNamespace, {
    ...quietSettings,
    // A local route is enough to bind to an IPv6 address, as it is for IPv4.
    'ipv6/ip_nonlocal_bind': '1',
  });
  await buildBridge(names);
  await buildUplink(names);
  await buildManagementLink(names);
  const [ipv4, ipv6] = lanNetworks.map(({ gateway }) => gateway) as [string, string];
  const counted = { uplink: links.uplink, bridge: links.bridge, hostAddresses: [ipv4, ipv6] as const };
  const rules = `${truthRules(counted)}\n${guardRules(forwards)}`;
  await runTool(['ip', 'netns', 'exec', names.hypervisorNamespace, 'nft', '-f', '-'], rules);
}

function refuseTakenAddress(names: WorldNames): void {
  for (const [link, addresses] of Object.entries(networkInterfaces())) {
    if (addresses?.some((entry) => entry.address === names.hostAddress)) {
      throw new CodedError(
        'lab.address_taken',
        `The link ${link} has ${names.hostAddress}, which this world needs. Use another data directory`,
      );
    }
  }
}

async function buildBridge(names: WorldNames): Promise<void> {
  await runIp(names.hypervisorNamespace, [
    'link set lo up',
    `link add ${links.bridge} address ${macs.bridge} type bridge stp_state 0 mcast_snooping 0`,
    `link set ${links.bridge} gso_max_segs 1`,
    ...lanNetworks.map((network) => {
      const length = network.prefix.split('/')[1];
      return `addr add ${network.gateway}/${length} dev ${links.bridge}${noDad(network.gateway)}`;
    }),
    `link set ${links.bridge} up`,
  ]);
}

async function buildUplink(names: WorldNames): Promise<void> {
  await runIp(names.hypervisorNamespace, [
    `link add ${links.uplink} address ${macs.uplink} type veth peer name ${links.internet} address ${macs.internet} netns ${names.internetNamespace}`,
    `link set ${links.uplink} gso_max_segs 1`,
    ...wan.hypervisor.map((address) => `addr add ${address} dev ${links.uplink}${noDad(address)}`),
    `link set ${links.uplink} up`,
    ...wan.internetGateways.map((address) => fixedNeighbour(address, macs.internet, links.uplink)),
    // The resolver, the sites and the clients are further addresses of the internet's end.
    ...serviceAddresses.map((address) => fixedNeighbour(address, macs.internet, links.uplink)),
    ...attackRoutes(),
  ]);
  await runIp(names.internetNamespace, [
    'link set lo up',
    `link set ${links.internet} gso_max_segs 1`,
    ...wan.internet.map((address) => `addr add ${address} dev ${links.internet}${noDad(address)}`),
    ...serviceAddresses.map((address) => {
      const length = address.includes(':') ? 64 : 24;
      return `addr add ${address}/${length} dev ${links.internet}${noDad(address)}`;
    }),
    `link set ${links.internet} up`,
    ...wan.hypervisorGateways.map((address) => fixedNeighbour(address, macs.uplink, links.internet)),
    ...lanNetworks.map((network, family) => {
      return `route add ${network.prefix} via ${wan.hypervisorGateways[family]} dev ${links.internet}`;
    }),
    // Answers to spoofed addresses end here, without an error to their sender.
    ...Object.values(attackSources.spoofed).map((prefix) => `route add blackhole ${formatPrefix(prefix)}`),
    // Every address of these ranges is one of the internet's own.
    ...Object.values(attackSources.connecting).map((prefix) => {
      return `route add local ${formatPrefix(prefix)} dev lo`;
    }),
  ]);
}

/** What guests answer to an attack leaves through the uplink, like all their answers. */
function attackRoutes(): string[] {
  return Object.values(attackSources).flatMap(({ ipv4, ipv6 }) =>
    [ipv4, ipv6].map((prefix, family) => {
      return `route add ${formatPrefix(prefix)} via ${wan.internetGateways[family]} dev ${links.uplink}`;
    }),
  );
}

async function buildManagementLink(names: WorldNames): Promise<void> {
  await runIp(null, [
    `link add ${names.hostLink} type veth peer name ${links.management} netns ${names.hypervisorNamespace}`,
    `link set ${names.hostLink} addrgenmode none`,
    `addr add ${names.hostAddress}/30 dev ${names.hostLink}`,
    `link set ${names.hostLink} up`,
  ]);
  await runIp(names.hypervisorNamespace, [
    `link set ${links.management} addrgenmode none`,
    `addr add ${names.hypervisorAddress}/30 dev ${links.management}`,
    `link set ${links.management} up`,
  ]);
}

function guardRules(forwards: readonly number[]): string {
  const ports = forwards.length > 0 ? `\n    elements = { ${forwards.join(', ')} }` : '';
  return `table inet guard {
  set forwards {
    type inet_service${ports}
  }
  chain forward {
    type filter hook forward priority 0
    policy drop
    iifname "${links.bridge}" oifname { "${links.uplink}", "${links.bridge}" } accept
    iifname "${links.uplink}" oifname "${links.bridge}" accept
    # Frames that one segment passes on, seen here because bridges consult this hook; nothing is routed on a segment.
    iifname "pn*" oifname "pn*" accept
  }
  chain input {
    type filter hook input priority 0
    policy accept
    iifname "${links.management}" tcp sport @forwards accept
    iifname "${links.management}" drop
    iifname "pn*" drop
  }
  # Two segments may use the same addresses: what is known of one's connections must not speak for the other's.
  chain untracked {
    type filter hook prerouting priority raw
    policy accept
    iifname "pn*" notrack
  }
  chain output {
    type filter hook output priority 0
    policy accept
    oifname "${links.management}" tcp dport @forwards accept
    oifname "${links.management}" drop
  }
}`;
}

/** `ip neigh` line for an address whose MAC never has to be asked for. */
export function fixedNeighbour(address: string, mac: string, link: string): string {
  return `neigh replace ${address} lladdr ${mac} dev ${link} nud permanent`;
}

function noDad(address: string): string {
  return address.includes(':') ? ' nodad' : '';
}
