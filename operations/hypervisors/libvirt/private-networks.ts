/**
 * Private networks at a libvirt node: a network `svc-pn-<id>` of libvirt each. It stands for the node's bridge of the network's
 * number, which the provider's VLAN or VXLAN carries to other nodes. A network without a number there has a bridge that libvirt
 * makes, which leads nowhere and has no address: members reach each other on one node.
 */
import { CodedError } from '#common/errors/index.ts';
import type { PrivateInterface } from '../guest.ts';
import { checked, filterName } from './domain-xml.ts';
import { defineNicFilters, removeFilters } from './filters.ts';
import { complaintOf, tolerate, type Virsh, withFile } from './run-virsh.ts';

const isGone = /not running|failed to get domain|Domain not found|no domain with matching name/i;
const noNetwork = /Network not found|failed to get network|no network with matching name/i;

/** What libvirt calls the segment. */
export function segmentName(networkId: number): string {
  if (Number.isSafeInteger(networkId) && networkId > 0) return `svc-pn-${networkId}`;
  throw new CodedError('hypervisor.refused', `${networkId} is no private network.`);
}

/** Plugs the NIC in, now and at every start; one that is there is left alone. `bridge`: of the node, for this network alone. */
export async function attachNic(call: Virsh, guest: string, nic: PrivateInterface, bridge: string | null) {
  const name = checked('name', guest);
  const segment = segmentName(nic.networkId);
  const mac = checked('mac', nic.mac);
  await ensureSegment(call, nic.networkId, bridge);
  const isPlugged = async () =>
    (await listNics(call, name)).some((one) => one.mac === mac && one.source === segment);
  if (await isPlugged()) return;
  const isLive = await isRunning(call, name);
  // One that the operating system has not let go of yet is there already, and only has no link.
  const isLeft = isLive && (await listNics(call, name, 'live')).some((one) => one.mac === mac);
  const filter = filterName(name, nic.networkId);
  await defineNicFilters(call, filter, { mac, addresses: [nic.address] });
  const xml = `<interface type='network'>
  <mac address='${mac}'/>
  <source network='${segment}'/>
  <model type='virtio'/>
  <filterref filter='${filter}'/>
</interface>
`;
  const live = isLive && !isLeft ? ['--live'] : [];
  await withFile('interface.xml', xml, (file) => call(['attach-device', name, file, '--config', ...live]));
  if (isLeft) await call(['domif-setlink', name, mac, 'up']);
  if (!(await isPlugged())) throw failed(`The guest ${name} has no interface ${mac} yet.`);
}

/** Takes the NIC away, also from a guest that is not there. */
export async function detachNic(
  call: Virsh,
  guest: string,
  nic: Pick<PrivateInterface, 'networkId' | 'mac'>,
): Promise<void> {
  const name = checked('name', guest);
  try {
    const mac = checked('mac', nic.mac);
    const command = ['detach-interface', name, 'network', '--mac', mac];
    const has = async (when: 'inactive' | 'live') =>
      (await listNics(call, name, when)).some((one) => one.mac === mac);
    if (await has('inactive')) await call([...command, '--config']);
    if (await has('inactive')) throw failed(`The guest ${name} still has the interface ${mac}.`);
    if (!(await isRunning(call, name)) || !(await has('live')))
      return await removeFilters(call, name, nic.networkId);
    // An operating system that does not let go of it must not stay on the network.
    await call(['domif-setlink', name, mac, 'down']);
    await tolerate(
      call([...command, '--live']),
      /device not found|no interface found|in the process of unplug/i,
    );
    await removeFilters(call, name, nic.networkId);
  } catch (error) {
    if (!isGone.test(complaintOf(error))) throw error;
  }
}

/** Takes away from the segment all NICs but these. */
export async function detachOthers(
  call: Virsh,
  networkId: number,
  members: readonly { guest: string; interface: PrivateInterface }[],
): Promise<void> {
  const wanted = new Set(members.map((member) => `${member.guest} ${member.interface.mac}`));
  const guests = (await call(['list', '--all', '--name']))
    .split(/\s+/)
    .filter((name) => /^vm-\d+$/.test(name));
  for (const guest of guests) {
    for (const nic of await listNics(call, guest)) {
      if (nic.source === segmentName(networkId) && !wanted.has(`${guest} ${nic.mac}`))
        await detachNic(call, guest, { networkId, mac: nic.mac });
    }
  }
}

export async function removeSegment(call: Virsh, networkId: number): Promise<void> {
  const segment = segmentName(networkId);
  for (const command of ['net-destroy', 'net-undefine']) {
    try {
      await call([command, segment]);
    } catch (error) {
      const isFine = noNetwork.test(complaintOf(error)) || /is not active/i.test(complaintOf(error));
      if (!isFine) throw error;
    }
  }
  if ((await readInfo(call, segment)) !== null) throw failed(`The network ${segment} is still there.`);
}

async function ensureSegment(call: Virsh, networkId: number, shared: string | null): Promise<void> {
  const segment = segmentName(networkId);
  // A bridge's name ends at 15 characters; eleven digits of the id are enough for every network there will be.
  const bridge = shared ?? `svpn${String(networkId).slice(-11)}`;
  let info = await readInfo(call, segment);
  if (info !== null && info.bridge !== bridge) {
    await removeSegment(call, networkId);
    info = null;
  }
  if (info === null) {
    const kind = shared === null ? " stp='off'/>" : "/>\n  <forward mode='bridge'/>";
    const xml = `<network>\n  <name>${segment}</name>\n  <bridge name='${bridge}'${kind}\n</network>\n`;
    // The first two members of a network may come at once.
    await withFile('network.xml', xml, (file) => tolerate(call(['net-define', file]), /already exists/i));
  }
  if (!info?.isActive) await tolerate(call(['net-start', segment]), /already active/i);
  await call(['net-autostart', segment]);
}

/** Null when there is no such network. */
async function readInfo(call: Virsh, segment: string): Promise<{ bridge: string; isActive: boolean } | null> {
  try {
    const info = await call(['net-info', segment]);
    const value = (key: string) => new RegExp(`^${key}:\\s+(\\S+)`, 'm').exec(info)?.[1];
    return { bridge: value('Bridge') ?? '', isActive: value('Active') === 'yes' };
  } catch (error) {
    if (!noNetwork.test(complaintOf(error))) throw error;
    return null;
  }
}

/** The NICs that the guest has at its next start, or now: columns device, type, source, model, MAC. */
async function listNics(
  call: Virsh,
  guest: string,
  when: 'inactive' | 'live' = 'inactive',
): Promise<{ source: string; mac: string }[]> {
  const text = await call(['domiflist', guest, ...(when === 'inactive' ? ['--inactive'] : [])]);
  return text.split('\n').flatMap((line) => {
    const columns = line.trim().split(/\s+/);
    return columns.length === 5 && columns[4]!.includes(':')
      ? [{ source: columns[2]!, mac: columns[4]!.toLowerCase() }]
      : [];
  });
}

const failed = (message: string) => new CodedError('hypervisor.failed', message);

async function isRunning(call: Virsh, guest: string): Promise<boolean> {
  return (await call(['domstate', guest])).trim() === 'running';
}
