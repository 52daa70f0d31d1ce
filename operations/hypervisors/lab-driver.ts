/** The hypervisor of the lab: every guest is a network namespace with real packets. Speaks the lab's control socket. */
import { describeError } from '#common/errors/index.ts';
import type { GuardReason } from '#contracts/guard-reasons.ts';
import { type CallLab, callLab, type LabSocket, refusal, sendToLab } from './call-lab.ts';
import {
  type GuestAddress,
  type GuestSize,
  type HypervisorDriver,
  type InterfaceGuard,
  type PrivateInterface,
  refuseCapability,
} from './guest.ts';

interface LabWorld {
  node: string;
  bridge: string;
  networks: { prefix: string; gateway: string; first_guest: string; last_guest: string }[];
}

interface LabGuest {
  name: string;
  power: 'on' | 'off';
  rebuild: number;
  rescue: string | null;
  iso: string | null;
  mac: string | null;
  private_interfaces: { mac: string }[];
  size: { vcpus: number; memory_mb: number; disk_gb: number } | null;
  /** Null for a guest without a link on the public bridge. */
  interface: string | null;
  /** Null while it is off. */
  counters: { received_bytes: number; sent_bytes: number } | null;
  guarded: {
    interface: string;
    network: number | null;
    dropped: InterfaceGuard['dropped'];
    claimed: { reason: GuardReason; source: string; seconds_ago: number }[];
  }[];
}

/** Sources that were silent for longer belong to an earlier look. */
const claimedSeconds = 60;

/** What a guest's firewall does besides its rules. */
const implicitRules: HypervisorDriver['implicitRules'] = [
  {
    direction: 'inbound',
    action: 'accept',
    protocol: 'any',
    description: 'Platform: answers to connections that the server has opened, and ICMP errors about them',
  },
  {
    direction: 'outbound',
    action: 'accept',
    protocol: 'any',
    description: 'Platform: answers to connections that others have opened',
  },
  { direction: 'outbound', action: 'drop', protocol: 'any', description: 'Platform: spoofed traffic' },
];

/** A guest of the lab has no operating system of its own, so there is no root in it. */
export const labCapabilities = [
  'firewall',
  'rebuild',
  'resize',
  'addresses',
  'snapshots',
  'rescue',
  'iso',
  'speed_limit',
] as const;

export function createLabDriver(socket: LabSocket): HypervisorDriver {
  const call: CallLab = (method, path, body) => callLab(socket, method, path, body);
  return {
    driver: 'lab',
    reach: 'site',
    capabilities: labCapabilities,
    guard: 'counted',
    implicitRules,
    preparedGuests: [],
    ...siteOf(call),
    ...guestsOf(call),
    ...powerOf(socket, call),
    ...networksOf(call),
  };
}

const guestPath = (name: string) => `/guests/${encodeURIComponent(name)}`;
const snapshotPath = (name: string, snapshot: number) => `${guestPath(name)}/snapshots/${snapshot}`;

function siteOf(
  call: CallLab,
): Pick<HypervisorDriver, 'checkNode' | 'describeSite' | 'observeGuests' | 'inspectGuests'> {
  return {
    async checkNode() {
      try {
        const { node } = (await call('GET', '/world')) as LabWorld;
        return [{ subject: 'connection', state: 'good', text: `The lab of ${node} answers.` }];
      } catch (error) {
        return [{ subject: 'connection', state: 'bad', text: describeError(error) }];
      }
    },
    async describeSite() {
      const world = (await call('GET', '/world')) as LabWorld;
      return {
        node: world.node,
        bridge: world.bridge,
        networks: world.networks.map((network) => ({
          prefix: network.prefix,
          gateway: network.gateway,
          firstGuest: network.first_guest,
          lastGuest: network.last_guest,
        })),
      };
    },
    async inspectGuests() {
      const { guests } = (await call('GET', '/guests')) as { guests: LabGuest[] };
      return guests.map(({ name, mac, private_interfaces: nics, size }) => ({
        name,
        vcpus: size?.vcpus ?? null,
        memoryMb: size?.memory_mb ?? null,
        macs: [...(mac === null ? [] : [mac]), ...nics.map((nic) => nic.mac)].sort(),
      }));
    },
    async observeGuests() {
      const { guests } = (await call('GET', '/guests')) as { guests: LabGuest[] };
      return guests.map(({ name, power, interface: device, counters, guarded }) => ({
        name,
        power,
        interfaces:
          device === null || counters === null
            ? []
            : [
                {
                  device,
                  isPublic: true,
                  receivedBytes: counters.received_bytes,
                  sentBytes: counters.sent_bytes,
                },
              ],
        guards: guarded.map(({ interface: port, network, dropped, claimed }) => ({
          ...{ device: port, networkId: network, dropped },
          claimed: claimed
            .filter((claim) => claim.seconds_ago <= claimedSeconds)
            .map(({ reason, source }) => ({ reason, source })),
        })),
      }));
    },
  };
}

function guestsOf(
  call: CallLab,
): Pick<
  HypervisorDriver,
  | 'ensureGuest'
  | 'ensureGone'
  | 'applyFirewall'
  | 'applyGuard'
  | 'rebuildGuest'
  | 'resizeGuest'
  | 'createSnapshot'
  | 'restoreSnapshot'
  | 'deleteSnapshot'
  | 'rescueGuest'
  | 'endRescue'
  | 'changeIso'
  | 'fetchImage'
  | 'setRootPassword'
  | 'forgetRootPassword'
  | 'setAddresses'
  | 'limitSpeed'
  | 'consoleKinds'
  | 'openConsole'
> {
  return {
    async ensureGuest(guest, step) {
      await step(20);
      const addresses = guest.addresses.map(addressBody);
      await call('PUT', guestPath(guest.name), {
        ...(guest.mac === null ? {} : { mac: guest.mac, addresses }),
        ...(guest.privateInterfaces.length > 0
          ? { private_interfaces: guest.privateInterfaces.map(toWire) }
          : {}),
        ...(guest.source ? { source: guest.source } : { image: guest.imageSlug }),
        size: sizeOf(guest),
        power: 'on',
      });
      await step(95);
      return 'ready';
    },
    async rebuildGuest(guest, rebuild, step) {
      await step(20);
      await call('PUT', `${guestPath(guest.name)}/disk`, { image: guest.imageSlug, rebuild });
      await step(95);
      return 'ready';
    },
    async resizeGuest(name, size) {
      await call('PUT', `${guestPath(name)}/size`, sizeOf(size));
    },
    async createSnapshot(name, snapshot) {
      const { size } = (await call('PUT', snapshotPath(name, snapshot))) as LabGuest;
      // The lab has no disks: a copy of one would take its whole size.
      return { bytes: (size?.disk_gb ?? 0) * 1024 ** 3 };
    },
    async restoreSnapshot(name, snapshot, rebuild) {
      await call('PUT', `${guestPath(name)}/disk`, { snapshot, rebuild });
    },
    async deleteSnapshot(name, snapshot) {
      await call('DELETE', snapshotPath(name, snapshot));
      return true;
    },
    async rescueGuest(guest, change, step) {
      await step(20);
      await call('PUT', `${guestPath(guest.name)}/rescue`, { image: guest.imageSlug, change });
      await step(95);
      return 'ready';
    },
    async endRescue(name, change) {
      await call('PUT', `${guestPath(name)}/rescue`, { image: null, change });
    },
    async changeIso(name, iso, change) {
      await call('PUT', `${guestPath(name)}/iso`, { iso, change });
      return 'now';
    },
    fetchImage: refuseCapability,
    setRootPassword: refuseCapability,
    forgetRootPassword: refuseCapability,
    async setAddresses({ name, addresses }) {
      await call('PUT', `${guestPath(name)}/addresses`, { addresses: addresses.map(addressBody) });
    },
    async limitSpeed(name, mbit) {
      await call('PUT', `${guestPath(name)}/speed`, { mbit });
    },
    consoleKinds: [],
    openConsole: refuseCapability,
    async ensureGone(name) {
      await call('DELETE', guestPath(name));
    },
    async applyGuard(guest, isOn) {
      await call('PUT', `${guestPath(guest)}/guard`, { state: isOn ? 'on' : 'off' });
    },
    async applyFirewall(guest, plan) {
      const path = `${guestPath(guest)}/firewall`;
      if (plan === null) await call('DELETE', path);
      else
        await call('PUT', path, {
          inbound_policy: plan.inboundPolicy,
          outbound_policy: plan.outboundPolicy,
          rules: plan.rules.map(({ direction, action, protocol, ports, peers }) => ({
            direction,
            action,
            protocol,
            ports,
            peers,
          })),
        });
    },
  };
}

function powerOf(
  socket: LabSocket,
  call: CallLab,
): Pick<
  HypervisorDriver,
  'setPower' | 'signalShutdown' | 'restart' | 'readPower' | 'readRebuild' | 'readRescue' | 'readIso'
> {
  const find = async (name: string) => {
    const answer = await sendToLab(socket, 'GET', guestPath(name));
    if (answer.status === 404) return null;
    if (answer.status >= 300) throw refusal(answer);
    return answer.body as LabGuest;
  };
  return {
    async setPower(name, power) {
      await call('PUT', `${guestPath(name)}/power`, { power });
    },
    // A guest of the lab is a process that obeys at once, so a halt and a cut of its power are the same.
    async signalShutdown(name) {
      await call('PUT', `${guestPath(name)}/power`, { power: 'off' });
    },
    async restart(name) {
      await call('POST', `${guestPath(name)}/restart`);
    },
    readPower: async (name) => (await find(name))?.power ?? null,
    readRebuild: async (name) => (await find(name))?.rebuild ?? null,
    readIso: async (name) => (await find(name))?.iso ?? null,
    async readRescue(name) {
      const guest = await find(name);
      return guest && guest.rescue !== null;
    },
  };
}

function networksOf(
  call: CallLab,
): Pick<HypervisorDriver, 'attachInterface' | 'detachInterface' | 'syncNetwork' | 'removeNetwork'> {
  return {
    async attachInterface(guest, nic) {
      await call('PUT', `${guestPath(guest)}/networks/${nic.networkId}`, nicBody(nic));
      return { requiresReboot: false };
    },
    async detachInterface(guest, nic) {
      await call('DELETE', `${guestPath(guest)}/networks/${nic.networkId}`, { mac: nic.mac });
    },
    async syncNetwork(networkId, members) {
      await call('PUT', `/networks/${networkId}`, {
        members: members.map((member) => ({ guest: member.guest, ...nicBody(member.interface) })),
      });
    },
    async removeNetwork(networkId) {
      await call('DELETE', `/networks/${networkId}`);
    },
  };
}

function addressBody(given: GuestAddress): object {
  return { address: given.address, prefix_length: given.prefixLength, gateway: given.gateway };
}

function sizeOf(size: GuestSize): object {
  return { vcpus: size.vcpus, memory_mb: size.memoryMb, disk_gb: size.diskGb };
}

function nicBody(nic: PrivateInterface): object {
  return { mac: nic.mac, address: nic.address, prefix_length: nic.prefixLength };
}

function toWire(nic: PrivateInterface): object {
  return { network: nic.networkId, ...nicBody(nic) };
}
