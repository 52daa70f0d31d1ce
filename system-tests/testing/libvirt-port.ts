/** A guest's port at a libvirt node, as libvirt binds it to its filters, with a namespace for the guest and one for a neighbour. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GuardedPort } from '#lab/testing/guard-orders.ts';
import type { Scope } from '#lab/testing/lab-tests.ts';
import { filterName } from '#operations/hypervisors/libvirt/domain-xml.ts';
import { changeGuard, defineNicFilters, switchGuards } from '#operations/hypervisors/libvirt/filters.ts';
import { createVirsh } from '#operations/hypervisors/libvirt/run-virsh.ts';
import type { LibvirtWorld } from '#operations/hypervisors/testing/libvirt-world.ts';

export const own = { mac: '52:54:00:00:00:11', ipv4: '203.0.113.11', ipv6: '2001:db8:113::11' };
export const other = { mac: '52:54:00:00:00:12', ipv4: '203.0.113.12', ipv6: '2001:db8:113::12' };
const filter = filterName('vm-11', null);

const binding = `<filterbinding>
  <owner><name>vm-11</name><uuid>8c6d5a34-0000-4000-8000-000000000011</uuid></owner>
  <portdev name='svc11'/>
  <mac address='${own.mac}'/>
  <filterref filter='${filter}'/>
</filterbinding>`;

/** `folder` takes its files. */
export async function plugLibvirtGuest(
  scope: Scope,
  world: LibvirtWorld,
  folder: string,
): Promise<GuardedPort & { consultRules(isOn: boolean): void }> {
  const run = (argv: readonly string[]) => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
  const ip = (line: string) => run(['ip', ...line.split(' ')]);
  const id = randomBytes(3).toString('hex');
  const ends = [
    { ...own, namespace: `svc-lv-${id}-guest`, port: 'svc11' },
    { ...other, namespace: `svc-lv-${id}-peer`, port: 'peer' },
  ] as const;
  for (const { namespace, port, mac, ipv4, ipv6 } of ends) {
    ip(`netns add ${namespace}`);
    scope.after(() => ip(`netns delete ${namespace}`));
    const peer = `peer name eth0 address ${mac} netns ${namespace}`;
    run(world.inside(`ip link add ${port} type veth ${peer}`.split(' ')));
    run(world.inside(`ip link set ${port} master br0 up`.split(' ')));
    for (const link of ['lo', 'eth0']) ip(`-n ${namespace} link set ${link} up`);
    ip(`-n ${namespace} addr add ${ipv4}/24 dev eth0`);
    ip(`-n ${namespace} addr add ${ipv6}/64 dev eth0 nodad`);
  }
  const [inGuest, inNeighbour] = ends.map(({ namespace }) => (argv: readonly string[]) => [
    'ip',
    'netns',
    'exec',
    namespace,
    ...argv,
  ]);
  const virsh = createVirsh(world.uri);
  await defineNicFilters(virsh, filter, { mac: own.mac, addresses: [own.ipv4, own.ipv6] });
  const file = join(folder, 'binding.xml');
  writeFileSync(file, binding);
  world.virsh('nwfilter-binding-create', file);
  return {
    ...{ mac: own.mac, neighbour: other, inGuest: inGuest!, inNeighbour: inNeighbour! },
    ...{ device: 'eth0', folder },
    setAddresses: (addresses) => changeGuard(virsh, filter, { mac: own.mac, addresses }),
    setGuard: (isOn) => switchGuards(virsh, 'vm-11', isOn),
    /** Whether bridges consult the rules of packets; then they cut off what follows a packet, by which frames are known again. */
    consultRules: (isOn) =>
      void run(
        world.inside([
          ...['sh', '-e', '-c'],
          `for kind in iptables ip6tables; do echo ${isOn ? 1 : 0} > /proc/sys/net/bridge/bridge-nf-call-$kind; done`,
        ]),
      ),
  };
}
