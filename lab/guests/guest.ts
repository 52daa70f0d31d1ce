/** A guest as a driver defined it. */
import type { FirewallPlan } from '#lab/world/guest-firewall.ts';
import type { PrivateNic } from '#lab/world/private-networks.ts';

export type Power = 'on' | 'off';
export type GuardState = 'on' | 'off';

export interface GuestAddress {
  /** Canonical text. */
  address: string;
  prefixLength: number;
  gateway: string;
}

export interface GuestSize {
  vcpus: number;
  memoryMb: number;
  diskGb: number;
}

export interface GuestDefinition {
  name: string;
  /** Six lower-case hex pairs; null for a guest without a link on the public bridge, which has no addresses then. */
  mac: string | null;
  addresses: GuestAddress[];
  /** On private networks, one each. */
  nics: PrivateNic[];
  /** Off: its interfaces may send from any MAC and address. */
  guard: GuardState;
  /** What its public link sends and receives a second at most; null: as much as the machine can. */
  speedMbit: number | null;
  /** What its disk was made from and which rebuild made it, and its sizes. Noted only: the lab has no disks. */
  image: string | null;
  rebuild: number;
  size: GuestSize | null;
  /** The last rescue or its end: its number, and the image that the guest starts from, null for its own disk. */
  rescue: { change: number; image: string | null };
  /** The last change of its CD drive: its number, and the ISO that is there. */
  drive: { change: number; iso: string | null };
  /** Copies of its disk: the number of each, and the image that the disk was made from. */
  snapshots: { snapshot: number; image: string | null }[];
  /** Null: everything passes. */
  firewall: FirewallPlan | null;
  power: Power;
}
