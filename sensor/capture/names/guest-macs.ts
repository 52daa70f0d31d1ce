/**
 * Finds the MACs of a bridge that stand for one guest each. A lookup from one address of the guest can then name its
 * connections from another address (NET-2.2.3).
 *
 * A MAC belongs to one guest as long as it opens flows from one local IPv4 address and one IPv6 /64. A router's MAC
 * does not, nor does one that another guest sends under; a contradiction disables the MAC for ten minutes.
 */
import { mixHash } from '../keyed-table.ts';

const guestsMax = 1024;
const ways = 4;
const sets = guestsMax / ways;
/** Two words of MAC with VLAN, one of IPv4, two of IPv6, second of the last contradiction, used flag. */
const words = 7;
const doubtSeconds = 600;

export class GuestMacs {
  readonly #seed: number;
  readonly #guests = new Int32Array(guestsMax * words);
  #next = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  /**
   * Records that the MAC opens a flow from the local address at `at`. Every guest has link-local addresses, so they are
   * no contradiction.
   */
  note(high: number, low: number, version: number, address: Int32Array, at: number, now: number): void {
    const first = version === 4 ? address[at + 3]! : address[at]!;
    const second = version === 4 ? 0 : address[at + 1]!;
    const guests = this.#guests;
    const guest = this.#find(high, low) ?? this.#add(high, low, now);
    if (isLinkLocal(version, address, at)) return;
    const field = version === 4 ? guest + 2 : guest + 3;
    const isKnown = guests[field] !== 0 || (version === 6 && guests[field + 1] !== 0);
    const isSame = guests[field] === first && (version === 4 || guests[field + 1] === second);
    if (isSame) return;
    if (isKnown) guests[guest + 5] = now | 0;
    guests[field] = first;
    if (version === 6) guests[field + 1] = second;
  }

  /** True when the MAC is known and had no contradiction recently. */
  isOne(high: number, low: number, now: number): boolean {
    const guest = this.#find(high, low);
    return guest !== null && (now | 0) - this.#guests[guest + 5]! > doubtSeconds;
  }

  #set(high: number, low: number): number {
    return (mixHash(mixHash(this.#seed, high), low) & (sets - 1)) * ways * words;
  }

  #find(high: number, low: number): number | null {
    const set = this.#set(high, low);
    const guests = this.#guests;
    for (let guest = set; guest < set + ways * words; guest += words) {
      if (guests[guest] === high && guests[guest + 1] === low && guests[guest + 6] === 1) return guest;
    }
    return null;
  }

  /** Replaces the entries of a set in turn. */
  #add(high: number, low: number, now: number): number {
    this.#next = (this.#next + 1) % ways;
    const guest = this.#set(high, low) + this.#next * words;
    const guests = this.#guests;
    guests.fill(0, guest, guest + words);
    guests[guest] = high;
    guests[guest + 1] = low;
    guests[guest + 5] = (now | 0) - doubtSeconds - 1;
    guests[guest + 6] = 1;
    return guest;
  }
}

/** True for 169.254.0.0/16 and fe80::/10, which every guest may use. */
export function isLinkLocal(version: number, address: Int32Array, at: number): boolean {
  if (version === 4) return address[at + 3]! >>> 16 === 0xa9fe;
  return address[at]! >>> 22 === 0x3fa;
}
