/** What a hypervisor is told about a guest, and what it says about itself. */
import { hasCode } from '#common/errors/index.ts';

export interface GuestAddress {
  address: string;
  prefixLength: number;
  gateway: string;
}

/** A guest's card on a private network. */
export interface PrivateInterface {
  /** Names the network's segment at every hypervisor: two networks never share one, whatever their addresses. */
  networkId: number;
  /** Identifies the card. */
  mac: string;
  /** IPv4. There is no gateway: a private network leads nowhere else. */
  address: string;
  prefixLength: number;
}

export interface GuestDefinition {
  /** The guest's identity at the hypervisor: `vm-<server id>`. */
  name: string;
  /** Of its public card; null for a guest that has private cards only, and then no addresses. */
  mac: string | null;
  addresses: readonly GuestAddress[];
  /** The private cards with which it boots. */
  privateInterfaces: readonly PrivateInterface[];
  hostname: string;
  imageSlug: string;
  vcpus: number;
  memoryMb: number;
  diskGb: number;
  rootPassword: string;
  sshKeys: readonly string[];
  userData: string | null;
}

/** A range that guests may have addresses of. */
export interface HypervisorNetwork {
  prefix: string;
  gateway: string;
  firstGuest: string;
  lastGuest: string;
}

/** A guest that exists on the wire already and is waiting to become somebody's server. */
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

export interface HypervisorDriver {
  readonly driver: 'simulated' | 'lab';
  /** Handed out before any other address; with their own MAC. */
  readonly preparedGuests: readonly PreparedGuest[];
  /** Where guests run and what addresses they may have. */
  describeSite(): Promise<HypervisorSite>;
  /** Resolves when the guest runs and is addressable. `step` is told how far it is, in percent. */
  ensureGuest(guest: GuestDefinition, step: (progress: number) => Promise<void>): Promise<void>;
  setPower(name: string, power: 'on' | 'off'): Promise<void>;
  restart(name: string): Promise<void>;
  /** Resolves when nothing of the guest is left, its private cards included, also when there never was one. */
  ensureGone(name: string): Promise<void>;
  /**
   * Resolves when the guest has this card on its network's segment, which is made where there is none; at once in a
   * guest that runs, unless `requiresReboot`. A card that is there already is left alone.
   */
  attachInterface(guest: string, card: PrivateInterface): Promise<{ requiresReboot: boolean }>;
  /** Resolves when the guest has no card of this MAC on the segment, also when there is no such guest. */
  detachInterface(guest: string, card: Pick<PrivateInterface, 'networkId' | 'mac'>): Promise<void>;
  /** Resolves when the segment exists and holds exactly these cards; missing ones are plugged in, others taken away. */
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

/** True for an answer that the same call will get again: trying once more can't help. */
export function isPermanentRefusal(error: unknown): boolean {
  return hasCode(error, 'hypervisor.refused');
}
