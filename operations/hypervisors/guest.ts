/** What a hypervisor is told about a guest, and what it says about itself. */
import type { Duplex } from 'node:stream';
import { CodedError, hasCode } from '#common/errors/index.ts';
import type { Capability, ConsoleKind, ImageKind } from '#contracts/capabilities.ts';
import type { GuardReason } from '#contracts/guard-reasons.ts';
import type { FirewallProtocol } from '#contracts/ip-protocols.ts';

export const driverNames = ['simulated', 'lab', 'libvirt'] as const;
export type DriverName = (typeof driverNames)[number];

export interface GuestAddress {
  address: string;
  prefixLength: number;
  gateway: string;
}

/** A guest's NIC on a private network. */
export interface PrivateInterface {
  /** Names the network's segment at every hypervisor: two networks never share one, even with the same addresses. */
  networkId: number;
  /** The network's number among the bridges of the nodes of its location (`bridgeOf`); null: it has none. */
  segment: number | null;
  /** Identifies the NIC. */
  mac: string;
  /** IPv4. There is no gateway: a private network leads nowhere else. */
  address: string;
  prefixLength: number;
}

export interface GuestSize {
  vcpus: number;
  memoryMb: number;
  diskGb: number;
}

export interface GuestDefinition extends GuestSize {
  /** The guest's identity at the hypervisor: `vm-<server id>`. */
  name: string;
  /** Of its public NIC; null for a guest that has private NICs only, and then no addresses. */
  mac: string | null;
  addresses: readonly GuestAddress[];
  /** The private NICs with which it boots. */
  privateInterfaces: readonly PrivateInterface[];
  hostname: string;
  imageSlug: string;
  rootPassword: string;
  sshKeys: readonly string[];
  userData: string | null;
  /** A complete snapshot of another guest of the node, which its first disk is made from; absent: its image. */
  source?: { guest: string; snapshot: number };
}

/** One filter of a guest's public NIC; the first that fits decides. */
export interface FilterRule {
  direction: 'inbound' | 'outbound';
  action: 'accept' | 'drop';
  protocol: FirewallProtocol;
  /** Of the destination: `443` or `8000-9000`; null: all. */
  ports: string | null;
  /** Canonical remote prefixes; empty: all addresses. */
  peers: readonly string[];
}

/** What a guest's public NIC lets through. */
export interface FilterPlan {
  inboundPolicy: 'accept' | 'drop';
  outboundPolicy: 'accept' | 'drop';
  rules: readonly FilterRule[];
}

/** A rule of the platform; customers cannot disable it. */
export interface ImplicitRule {
  direction: 'inbound' | 'outbound';
  action: 'accept' | 'drop';
  protocol: FirewallProtocol;
  description: string;
}

/** A range that guests may have addresses of. */
export interface HypervisorNetwork {
  prefix: string;
  gateway: string;
  firstGuest: string;
  lastGuest: string;
}

/** A guest that already runs and is not yet assigned to a server. */
export interface PreparedGuest {
  name: string;
  mac: string;
  addresses: readonly string[];
}

export interface HypervisorSite {
  node: string;
  bridge: string;
  networks: readonly HypervisorNetwork[];
}

/** A machine that runs guests, and how it is reached. */
export interface HypervisorNode {
  name: string;
  driver: string;
  /** Connection URI of libvirt, such as `qemu+ssh://svc@node-1/system`. */
  uri: string | null;
  /** Storage pool of libvirt that holds images and disks. */
  storagePool: string | null;
  /** Bridge that guests are plugged into. */
  bridge: string | null;
  /** Pattern of the bridges for private networks, such as `brpn{100-199}`; null: there are none. */
  networkBridges: string | null;
}

/** The bridges that a pattern names; null for a text that is no pattern. */
export function parseNetworkBridges(pattern: string): { prefix: string; first: number; last: number } | null {
  const [, prefix, ...numbers] =
    /^([A-Za-z][A-Za-z0-9._-]{0,12})\{([1-9]\d{0,7})-([1-9]\d{0,7})\}$/.exec(pattern) ?? [];
  const [first, last] = numbers.map(Number);
  // A device has at most 15 characters.
  if (prefix === undefined || first! > last! || `${prefix}${last}`.length > 15) return null;
  return { prefix, first: first!, last: last! };
}

/** The node's bridge for private networks of this number; null where it has none, and the network ends at the node. */
export function bridgeOf(
  { networkBridges }: Pick<HypervisorNode, 'networkBridges'>,
  segment: number | null,
): string | null {
  const bridges = networkBridges === null ? null : parseNetworkBridges(networkBridges);
  if (bridges === null || segment === null || segment < bridges.first || segment > bridges.last) return null;
  return `${bridges.prefix}${segment}`;
}

/** What a hypervisor counts on one NIC of a guest, from the guest's point of view, since `device` exists. */
export interface InterfaceCounters {
  device: string;
  /** False for a NIC on a private network, whose traffic is free. */
  isPublic: boolean;
  receivedBytes: number;
  sentBytes: number;
}

/** What the guard of one NIC has dropped since it stands; it may begin anew at any time. */
export interface InterfaceGuard {
  device: string;
  /** The private network; null: the public NIC. */
  networkId: number | null;
  /** Packets. */
  dropped: Partial<Record<GuardReason, number>>;
  /** MACs and addresses that the packets claimed as their source. */
  claimed: { reason: GuardReason; source: string }[];
}

export interface ObservedGuest {
  name: string;
  power: 'on' | 'off' | 'unknown';
  /** Empty where the driver counts nothing. */
  interfaces: InterfaceCounters[];
  /** Empty where the driver doesn't count what guards drop. */
  guards: InterfaceGuard[];
}

/** A guest as it stands at the hypervisor, with what its next start takes. */
export interface FoundGuest {
  name: string;
  /** Null where the hypervisor does not know them. */
  vcpus: number | null;
  memoryMb: number | null;
  /** Of all its NICs, in order. */
  macs: string[];
}

/** What a node needs to run servers, in the order in which it is checked. */
export const nodeSubjects = [
  'connection',
  'programs',
  'virtualization',
  'storage pool',
  'images',
  'bridge',
  'private networks',
  'network filters',
  'speed limits',
  'guest agents',
] as const;

/** How one of them is; `unknown`: not checked, because another one is bad. */
export interface NodeCheck {
  subject: (typeof nodeSubjects)[number];
  state: 'good' | 'warning' | 'bad' | 'unknown';
  /** A sentence for operators. */
  text: string;
}

/** The file of an image in the storage of a node. */
export const imageFile = ({ slug, kind }: { slug: string; kind: ImageKind }) =>
  `${slug}.${kind === 'iso' ? 'iso' : 'qcow2'}`;

/** What is fetched, and what it has to be. */
export interface ImageSource {
  /** `imageFile` of the image that it is for. */
  file: string;
  url: string;
  /** SHA-256 or SHA-512, in digits of lower case. */
  checksum: string;
}

/** How far the copy of a disk is in percent, or what the complete one takes. */
export type SnapshotProgress = { progress: number } | { bytes: number };

/** How far a guest is that was just made: a `booting` one has to be asked about again, and so has one whose disk is still copied. */
export type GuestProgress = 'ready' | 'booting' | 'copying';

/**
 * One node's hypervisor. Every call is idempotent by the guest's name. `hypervisor.refused` is a final answer,
 * everything else is worth another attempt.
 */
export interface HypervisorDriver {
  readonly driver: DriverName;
  /** Handed out before any other address; with their own MAC. */
  readonly preparedGuests: readonly PreparedGuest[];
  /**
   * What one driver stands for: all guests of a site, whose private networks reach all of them, or those of one node, where that
   * takes a bridge (`bridgeOf`).
   */
  readonly reach: 'site' | 'node';
  /** Calls that need one which is not named are refused. */
  readonly capabilities: readonly Capability[];
  /** Platform rules for every guest with a firewall. */
  readonly implicitRules: readonly ImplicitRule[];
  /**
   * Resolves when the guest's public NIC is filtered so, now and after each start; null: not at all. Connections that
   * stand are left alone. Needs `firewall`.
   */
  applyFirewall(guest: string, plan: FilterPlan | null): Promise<void>;
  /** Whether `applyGuard` guards NICs here, and whether what guards drop is counted. */
  readonly guard: 'none' | 'uncounted' | 'counted';
  /**
   * Resolves when the guest's NICs send from their own MACs and addresses only, or anything, now and after each start. A
   * new guest is guarded. `hypervisor.refused` where there is no guard.
   */
  applyGuard(guest: string, isOn: boolean): Promise<void>;
  /** Checks what the node needs to run servers with these files of images, within half a minute; what is missing is said, not thrown. */
  checkNode(files: readonly string[]): Promise<NodeCheck[]>;
  /**
   * Puts an image into the node's storage; `step` is given percents. `hypervisor.refused` for one that is there already, for another checksum
   * and for what should be a qcow2 file and is none; nothing is left of it then.
   */
  fetchImage(source: ImageSource, step: (progress: number) => void): Promise<void>;
  /** Where guests run and what addresses they may have. */
  describeSite(): Promise<HypervisorSite>;
  /**
   * Makes the guest and switches it on. `ready` means that it is addressable, and that its disk needs no snapshot that it was made from.
   * `step` is told percents.
   */
  ensureGuest(guest: GuestDefinition, step: (progress: number) => Promise<void>): Promise<GuestProgress>;
  /**
   * Gives the guest a new disk made from the image, sets it up again and switches it on; its NICs and its firewall stay. The
   * old disk is deleted once the new one is made, so what refuses leaves the guest as it was. Rebuilds of a guest are
   * numbered upwards: a call whose number the guest already has only ends what that rebuild began, and one below it is
   * refused. Needs `rebuild`.
   */
  rebuildGuest(
    guest: GuestDefinition,
    rebuild: number,
    step: (progress: number) => Promise<void>,
  ): Promise<GuestProgress>;
  /** Gives a guest that is off other sizes; `hypervisor.refused` for one that is on and for a smaller disk. Needs `resize`. */
  resizeGuest(name: string, size: GuestSize): Promise<void>;
  /**
   * Copies the disk of a guest as it is when the copy begins, and is asked again until that is complete. No number of a snapshot is
   * used twice: a repeated call goes on with the copy that has begun, and refuses one that broke off. A guest that was off may be on
   * without running; switch it off afterwards. Needs `snapshots`.
   */
  createSnapshot(name: string, snapshot: number): Promise<SnapshotProgress>;
  /**
   * Gives the guest a new disk with the content of a complete snapshot, at least as large as its own, and leaves it off. `rebuild`
   * is numbered with rebuilds, and means the same. Needs `snapshots`.
   */
  restoreSnapshot(name: string, snapshot: number, rebuild: number): Promise<void>;
  /** True when nothing of the snapshot is left; false while the disk of the guest needs it. Ends its copy. Needs `snapshots`. */
  deleteSnapshot(name: string, snapshot: number): Promise<boolean>;
  /**
   * Restarts the guest from a new disk made from the image, with this root password and these keys; its own disk is another one of it,
   * untouched. Rescues and their ends are numbered upwards together: a call whose number the guest already has only ends what that one
   * began, and one below it is refused. What refuses leaves the guest as it was. Needs `rescue`.
   */
  rescueGuest(
    guest: GuestDefinition,
    change: number,
    step: (progress: number) => Promise<void>,
  ): Promise<GuestProgress>;
  /** Deletes the rescue disk and leaves the guest off, to start from its own one; nothing for a number that it has. Needs `rescue`. */
  endRescue(name: string, change: number): Promise<void>;
  /**
   * Puts an ISO of the node into the CD drive of the guest, in place of another one, or null: takes it out; from then on the guest starts
   * from it before its disk. A guest that runs and has no drive yet has it from its next start. Changes are numbered, as rescues are.
   * Needs `iso`.
   */
  changeIso(name: string, iso: string | null, change: number): Promise<'now' | 'next_boot'>;
  /**
   * Gives root the password of `guest` inside a guest that runs. Where nothing in it can do that, cloud-init does at its next boot: until
   * `forgetRootPassword` the node keeps a salted hash for it. Changes are numbered, and none is done twice. Needs `reset_password`.
   */
  setRootPassword(guest: GuestDefinition, change: number): Promise<'now' | 'next_boot'>;
  /** Resolves when the node keeps no password of the guest. */
  forgetRootPassword(guest: GuestDefinition): Promise<void>;
  /**
   * Resolves when the guest sends from exactly these addresses of its public NIC, where it is guarded, and is reached by them, now and
   * after each start. Its operating system is not changed; a rebuild sets it up anew. Needs `addresses`.
   */
  setAddresses(guest: { name: string; mac: string; addresses: readonly GuestAddress[] }): Promise<void>;
  /**
   * Resolves when the public NIC of the guest sends and receives at most so much, now and after each start; null: as much as it can.
   * Needs `speed_limit`.
   */
  limitSpeed(name: string, mbit: number | null): Promise<void>;
  /** What its consoles can speak, the usual one first. */
  readonly consoleKinds: readonly ConsoleKind[];
  /** Opens the console of a guest that runs; it ends when the guest is switched off. Needs `console`. */
  openConsole(name: string, kind: ConsoleKind): Promise<Duplex>;
  /** Switches the power itself, without asking the guest. */
  setPower(name: string, power: 'on' | 'off'): Promise<void>;
  /** Asks the guest to halt (ACPI); resolves when it has been asked. */
  signalShutdown(name: string): Promise<void>;
  /** `acpi` asks the guest, `reset` does not. */
  restart(name: string, how: 'acpi' | 'reset'): Promise<void>;
  /** The power of one guest; null when there is no such guest. */
  readPower(name: string): Promise<ObservedGuest['power'] | null>;
  /** The number of the rebuild or restore that made the guest's disk; 0 for its first one, null when there is no such guest. */
  readRebuild(name: string): Promise<number | null>;
  /** Whether the guest starts from a rescue disk; null when there is no such guest. */
  readRescue(name: string): Promise<boolean | null>;
  /** The ISO that the guest starts with; null for none, and when there is no such guest. */
  readIso(name: string): Promise<string | null>;
  /** Every guest of ours on this node, in one look. */
  observeGuests(): Promise<ObservedGuest[]>;
  /** What every guest of ours is made of. Takes longer than `observeGuests`. */
  inspectGuests(): Promise<FoundGuest[]>;
  /** Resolves when nothing of the guest is left, its private NICs included, also when there never was one. */
  ensureGone(name: string): Promise<void>;
  /**
   * Resolves when the guest has this NIC on its network's segment, which is made where there is none; at once in a
   * guest that runs, unless `requiresReboot`. A NIC that is there already is left alone.
   */
  attachInterface(guest: string, nic: PrivateInterface): Promise<{ requiresReboot: boolean }>;
  /** Resolves when the guest has no NIC of this MAC on the segment, also when there is no such guest. */
  detachInterface(guest: string, nic: Pick<PrivateInterface, 'networkId' | 'mac'>): Promise<void>;
  /** Resolves when the segment holds exactly these NICs; missing ones are plugged in, others taken away. */
  syncNetwork(
    networkId: number,
    members: readonly { guest: string; interface: PrivateInterface }[],
  ): Promise<void>;
  /** Resolves when nothing of the segment is left. Only for one without members. */
  removeNetwork(networkId: number): Promise<void>;
}

/** The name of a server's guest at its hypervisor. */
export function guestName(serverId: number): string {
  return `vm-${serverId}`;
}

/** The server that a guest's name stands for; null for a guest that is none of ours. */
export function serverIdOfGuest(name: string): number | null {
  const id = Number(/^vm-([1-9]\d{0,15})$/.exec(name)?.[1]);
  return Number.isSafeInteger(id) ? id : null;
}

/** For calls of a driver that do not exist there, such as `rebuild`. */
export async function refuseCapability(): Promise<never> {
  throw new CodedError('hypervisor.refused', 'The hypervisor of this node can’t do that.');
}

/** True for an answer that the same call will get again: trying once more can't help. */
export function isPermanentRefusal(error: unknown): boolean {
  return hasCode(error, 'hypervisor.refused');
}
