/**
 * Guests of libvirt, one node behind one connection URI, spoken to through `virsh`.
 *
 * A guest is a domain `vm-<id>` with two volumes of the node's storage pool (`volumes.ts`): a copy-on-write disk over the volume
 * `<image>.qcow2`, and a seed image. A guest counts as addressable when its NIC has sent something: until then it is
 * `booting`, and the caller asks again.
 */
import type { Duplex } from 'node:stream';
import { CodedError } from '#common/errors/index.ts';
import { capabilities } from '#contracts/capabilities.ts';
import {
  bridgeOf,
  type GuestDefinition,
  type HypervisorDriver,
  type HypervisorNode,
  type ObservedGuest,
  type PrivateInterface,
  parseNetworkBridges,
} from '../guest.ts';
import { changeIso, readIso } from './cd-drive.ts';
import {
  changeRootPassword,
  changeSize,
  inspectGuests,
  limitSpeed,
  readRebuild,
  redefine,
  replaceDisk,
} from './change-guest.ts';
import { checkNode } from './check-node.ts';
import { connectToNode, openSerial, openVnc } from './console.ts';
import { checked, domainXml, filterName } from './domain-xml.ts';
import { fetchImage } from './fetch-image.ts';
import { changeGuard, defineFirewall, defineNicFilters, removeFilters, switchGuards } from './filters.ts';
import { attachNic, detachNic, detachOthers, removeSegment } from './private-networks.ts';
import { beginRescue, endRescue, readRescue } from './rescue.ts';
import { complaintOf, createVirsh, tolerate, type Virsh } from './run-virsh.ts';
import { copyDisk, deleteSnapshot, pullSource, restoreDisk } from './snapshots.ts';
import { deleteVolume, makeVolumes, seedOf, volumesOf, writeSeed } from './volumes.ts';

/**
 * Connections of libvirt that start no program but ssh itself: by ssh, TLS or a socket, without the query parameters that name
 * a program (`command`, `netcat`) or leave out a check (`no_verify`). No user or host begins like an option.
 */
const uriPattern =
  /^(qemu(\+(ssh|tls|unix))?|test):\/\/([A-Za-z0-9_][\w.-]*@)?([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])?(:\d{1,5})?\/[A-Za-z0-9/._-]*(\?((keyfile|known_hosts|pkipath|socket)=[A-Za-z0-9/._-]+(&|$))+)?$/;

/** How long one command of a check may take. */
const checkMs = 8_000;

/** What a guest's firewall does besides its rules. */
const implicitRules: HypervisorDriver['implicitRules'] = [
  {
    direction: 'inbound',
    action: 'accept',
    protocol: 'any',
    description:
      'Platform: answers to connections that the server has opened, ICMP errors about them, and neighbor discovery',
  },
  {
    direction: 'outbound',
    action: 'accept',
    protocol: 'any',
    description: 'Platform: answers to connections that others have opened, and neighbor discovery',
  },
  { direction: 'outbound', action: 'drop', protocol: 'any', description: 'Platform: spoofed traffic' },
];

/** Makes the driver of a node. `virsh` and `connect` stand in for the program and for a connection to a socket of the node in tests. */
export function createLibvirtDriver(
  node: HypervisorNode,
  { virsh, connect }: { virsh?: Virsh; connect?: (path: string) => Duplex } = {},
): HypervisorDriver {
  if (node.uri === null || !uriPattern.test(node.uri)) {
    throw new CodedError(
      'hypervisor.refused',
      `Node ${node.name} needs a connection URI such as qemu+ssh://svc@${node.name}/system: by ssh, tls or unix, with no parameters but keyfile, known_hosts, pkipath and socket.`,
    );
  }
  const { uri } = node;
  const call = virsh ?? createVirsh(uri);
  const pool = checked('storagePool', node.storagePool);
  const bridge = checked('bridge', node.bridge);
  if (node.networkBridges !== null && parseNetworkBridges(node.networkBridges) === null)
    throw new CodedError(
      'hypervisor.refused',
      'Bridges of private networks are named by a prefix and a range of numbers, such as brpn{100-199}; a name has at most 15 characters.',
      { field: 'networkBridges' },
    );
  const attach = (guest: string, nic: PrivateInterface) =>
    attachNic(call, guest, nic, bridgeOf(node, nic.segment));
  const power = (name: string) => readPower(call, name);
  const unlessSo = (command: readonly string[], isSo: RegExp) => tolerate(call(command), isSo);
  const start = async (name: string, step: (progress: number) => Promise<void>) => {
    await unlessSo(['start', checked('name', name)], /already active|already running/i);
    await step(80);
    const seen = (await observe(call)).find((one) => one.name === name);
    return seen?.interfaces.some((one) => one.sentBytes > 0) ? 'ready' : 'booting';
  };
  return {
    driver: 'libvirt',
    reach: 'node',
    capabilities,
    implicitRules,
    applyFirewall: (guest, plan) => defineFirewall(call, guest, plan),
    // libvirt does not tell what its filters drop.
    guard: 'uncounted',
    applyGuard: (guest, isOn) => switchGuards(call, guest, isOn),
    preparedGuests: [],
    checkNode: (files) =>
      checkNode({ ...node, call: virsh ?? createVirsh(uri, checkMs), pool, bridge, files }),
    fetchImage: (source, step) => fetchImage({ call, uri, pool }, source, step),
    describeSite: async () => ({ node: node.name, bridge, networks: [] }),
    async ensureGuest(guest, step) {
      if ((await power(guest.name)) === null) {
        await makeVolumes(call, pool, guest, firstDiskOf(guest.name));
        await step(40);
        if (guest.mac !== null)
          await defineNicFilters(call, filterName(guest.name, null), publicNicOf(guest, guest.mac));
        await define(call, guest, pool, bridge);
        await step(60);
      }
      for (const nic of guest.privateInterfaces) await attach(guest.name, nic);
      const progress = await start(guest.name, step);
      if (guest.source && !(await pullSource(call, pool, guest.name, guest.source))) return 'copying';
      return progress;
    },
    async rebuildGuest(guest, rebuild, step) {
      await replaceDisk(call, pool, guest.name, rebuild, (disk) => makeVolumes(call, pool, guest, disk));
      await step(60);
      return start(guest.name, step);
    },
    resizeGuest: (name, size) => changeSize(call, pool, checked('name', name), size),
    createSnapshot: (name, snapshot) => copyDisk(call, pool, checked('name', name), snapshot),
    restoreSnapshot: (name, snapshot, rebuild) =>
      restoreDisk(call, pool, checked('name', name), snapshot, rebuild),
    deleteSnapshot: (name, snapshot) => deleteSnapshot(call, pool, checked('name', name), snapshot),
    async rescueGuest(guest, change, step) {
      await beginRescue(call, pool, guest, change);
      await step(60);
      return start(guest.name, step);
    },
    endRescue: (name, change) => endRescue(call, pool, checked('name', name), change),
    changeIso: (name, iso, change) => changeIso(call, pool, checked('name', name), iso, change),
    setRootPassword: (guest, change) => changeRootPassword(call, pool, guest, change),
    forgetRootPassword: (guest) => writeSeed(call, pool, guest, null),
    async setAddresses(guest) {
      if ((await power(guest.name)) === null)
        throw new CodedError('hypervisor.refused', `The node has no guest ${guest.name}.`);
      await changeGuard(call, filterName(guest.name, null), publicNicOf(guest, guest.mac));
    },
    limitSpeed: (name, mbit) => limitSpeed(call, name, mbit),
    consoleKinds: ['vnc', 'text'],
    openConsole: (name, kind) =>
      kind === 'text'
        ? openSerial(call, uri, name)
        : openVnc(call, name, connect ?? ((path) => connectToNode(uri, path))),
    ...powerOf(call),
    readPower: power,
    readRebuild: async (name) => ((await power(name)) === null ? null : readRebuild(call, pool, name)),
    readRescue: async (name) => ((await power(name)) === null ? null : readRescue(call, name)),
    readIso: async (name) => ((await power(name)) === null ? null : readIso(call, name)),
    observeGuests: () => observe(call),
    inspectGuests: () => inspectGuests(call),
    async ensureGone(name) {
      const domain = checked('name', name);
      const isAbsent = /failed to get domain|Domain not found/i;
      await unlessSo(['destroy', domain], /not running|failed to get domain|Domain not found/i);
      const rest = ['--managed-save', '--snapshots-metadata', '--checkpoints-metadata', '--nvram'];
      await unlessSo(['undefine', domain, ...rest], isAbsent);
      for (const volume of await volumesOf(call, pool, name)) await deleteVolume(call, pool, volume);
      await removeFilters(call, name);
      // A node that said it was done may not be: what is left would stay for good.
      if ((await power(name)) !== null)
        throw new CodedError('hypervisor.failed', `The guest ${name} is still there.`);
    },
    async attachInterface(guest, nic) {
      await attach(guest, nic);
      return { requiresReboot: false };
    },
    detachInterface: (guest, nic) => detachNic(call, guest, nic),
    async syncNetwork(networkId, members) {
      await detachOthers(call, networkId, members);
      for (const member of members) await attach(member.guest, member.interface);
    },
    removeNetwork: (networkId) => removeSegment(call, networkId),
  };
}

function powerOf(call: Virsh): Pick<HypervisorDriver, 'setPower' | 'signalShutdown' | 'restart'> {
  return {
    async setPower(name, to) {
      if (to === 'on')
        await tolerate(call(['start', checked('name', name)]), /already active|already running/i);
      else await tolerate(call(['destroy', checked('name', name)]), /not running/i);
    },
    async signalShutdown(name) {
      await tolerate(call(['shutdown', checked('name', name), '--mode', 'acpi']), /not running/i);
    },
    async restart(name, how) {
      if ((await readPower(call, name)) === 'off') await call(['start', checked('name', name)]);
      else if (how === 'reset') await call(['reset', checked('name', name)]);
      else await call(['reboot', checked('name', name), '--mode', 'acpi']);
    },
  };
}

const firstDiskOf = (name: string) => checked('disk', `${name}.qcow2`);
const publicNicOf = (guest: Pick<GuestDefinition, 'addresses'>, mac: string) => ({
  mac,
  addresses: guest.addresses.map(({ address }) => address),
});

async function readPower(call: Virsh, name: string): Promise<ObservedGuest['power'] | null> {
  try {
    const state = (await call(['domstate', checked('name', name)])).trim();
    if (['running', 'idle', 'paused', 'in shutdown', 'pmsuspended'].includes(state)) return 'on';
    return state === 'shut off' || state === 'crashed' ? 'off' : 'unknown';
  } catch (error) {
    if (complaintOf(error).match(/failed to get domain|Domain not found/i)) return null;
    throw error;
  }
}

async function observe(call: Virsh): Promise<ObservedGuest[]> {
  return readDomstats(await call(['domstats', '--raw', '--state', '--interface']));
}

async function define(call: Virsh, guest: GuestDefinition, pool: string, bridge: string): Promise<void> {
  const hasHardware = /<domain type='kvm'/.test(await call(['capabilities']));
  const xml = domainXml({
    name: guest.name,
    mac: guest.mac,
    vcpus: guest.vcpus,
    memoryMb: guest.memoryMb,
    storagePool: pool,
    disk: firstDiskOf(guest.name),
    seed: seedOf(guest.name),
    bridge,
    type: hasHardware ? 'kvm' : 'qemu',
  });
  await redefine(call, xml);
}

/** libvirt's numbers of a domain's state: running, blocked and paused are on, shut off and crashed are off. */
const powers: Record<string, ObservedGuest['power']> = {
  1: 'on',
  2: 'on',
  3: 'on',
  4: 'on',
  5: 'off',
  6: 'off',
};

/** Guests of ours out of `virsh domstats --raw --state --interface`; other people's domains are left alone. */
export function readDomstats(text: string): ObservedGuest[] {
  return text
    .split(/^Domain: /m)
    .slice(1)
    .flatMap((part) => {
      const name = /^'(vm-[1-9]\d{0,15})'/.exec(part)?.[1];
      if (name === undefined) return [];
      const values = new Map(
        [...part.matchAll(/^\s+([a-z0-9.]+)=(.*)$/gm)].map((match) => [match[1]!, match[2]!]),
      );
      return [
        {
          ...{ name, power: powers[values.get('state.state') ?? ''] ?? 'unknown' },
          ...{ interfaces: countersOf(values), guards: [] },
        },
      ];
    });
}

function countersOf(values: ReadonlyMap<string, string>): ObservedGuest['interfaces'] {
  const count = Number(values.get('net.count') ?? 0);
  const found: ObservedGuest['interfaces'] = [];
  for (let index = 0; index < count; index += 1) {
    const device = values.get(`net.${index}.name`);
    const received = values.get(`net.${index}.rx.bytes`);
    const sent = values.get(`net.${index}.tx.bytes`);
    if (device === undefined || received === undefined || sent === undefined) continue;
    // Public NICs have the device that `deviceOf` names; libvirt names the others.
    const isPublic = device.startsWith('svc');
    found.push({ device, isPublic, receivedBytes: Number(received), sentBytes: Number(sent) });
  }
  return found;
}
