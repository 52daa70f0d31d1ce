/** The port of a guest of a lab, with a neighbour. */
import type { Lab } from '../index.ts';
import { links } from '../world/networks.ts';
import type { Interface } from './forged-frames.ts';
import type { GuardedPort } from './guard-orders.ts';
import { type Scope, startLab } from './lab-tests.ts';

export const [own, other] = [11, 12].map((last) => ({
  mac: `52:54:00:00:00:${last}`,
  ipv4: `203.0.113.${last}`,
  ipv6: `2001:db8:113::${last}`,
})) as [Interface, Interface];

/** A lab with the guests `vm-11` and `vm-12`, whose bridges pass on frames as they are. */
export async function startPair(scope: Scope, dataDir: string): Promise<Lab> {
  const lab = await startLab(scope, { dataDir });
  for (const [last, { mac, ipv4, ipv6 }] of [[11, own] as const, [12, other] as const])
    await lab.put({ name: `vm-${last}`, mac, addresses: [{ address: ipv4 }, { address: ipv6 }] });
  // Where bridges consult the rules of packets they cut off what follows a packet, by which frames are known again.
  await lab.execInHypervisor([
    ...['sh', '-e', '-c'],
    'for kind in iptables ip6tables; do echo 0 > /proc/sys/net/bridge/bridge-nf-call-$kind; done',
  ]);
  return lab;
}

export function labPort(lab: Lab, folder: string): GuardedPort {
  return {
    ...{ mac: own.mac, neighbour: other, device: links.guest, folder },
    inGuest: (argv) => lab.inGuest('vm-11', argv),
    inNeighbour: (argv) => lab.inGuest('vm-12', argv),
    setAddresses: (addresses) =>
      lab.setAddresses(
        'vm-11',
        addresses.map((address) => ({ address })),
      ),
    setGuard: (isOn) => lab.setGuard('vm-11', isOn ? 'on' : 'off'),
  };
}
