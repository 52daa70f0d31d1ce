/** What a hypervisor is told about a guest, and what it says about itself. */
import { hasCode } from '#common/errors/index.ts';

export interface GuestAddress {
  address: string;
  prefixLength: number;
  gateway: string;
}

export interface GuestDefinition {
  /** The guest's identity at the hypervisor: `vm-<server id>`. */
  name: string;
  mac: string;
  addresses: readonly GuestAddress[];
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
  /** Resolves when nothing of the guest is left, also when there never was one. */
  ensureGone(name: string): Promise<void>;
}

/** True for an answer that the same call will get again: trying once more can't help. */
export function isPermanentRefusal(error: unknown): boolean {
  return hasCode(error, 'hypervisor.refused');
}
