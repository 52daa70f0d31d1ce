/**
 * Spoofed packets: an address sends only from the MACs that the inventory gives it.
 *
 * A packet from another MAC counts in the capture's totals and for its receiver, never for its source address, and it names no
 * application. It has a flow of its own, whose sender is not local: the packets of the owner never share a record with it, so the
 * fast path, which compares MACs already, needs no further test.
 */
import { parseWords } from './address-words.ts';
import { type Packet, Protocol } from './decode/packet.ts';
import { sourceIsLower } from './flows/flow-hash.ts';
import { Field, Flag, spoofedPath } from './flows/flow-record.ts';
import type { FlowTable } from './flows/flow-table.ts';
import { isFromServer } from './flows/server-ports.ts';
import type { Ledger } from './reports/ledger.ts';

/** Canonical address, and MACs as `52:54:00:00:00:01`. */
export interface AddressOwners {
  address: string;
  macs: readonly string[];
}

/** Words of a record: the address, its version, the number of MACs, and two words for each. */
const Owner = { version: 4, macs: 5, first: 6 } as const;
const macsMax = 8;
const ownerWords = Owner.first + 2 * macsMax;
/** A filter of 8 KiB: most source addresses are remote, and need no search. */
const filterFactor = 0x9e3779b1;
const filterShift = 16;

export interface GuardParts {
  flows: FlowTable;
  ledger: Ledger;
  judgeSides(base: number): void;
}

export class AddressGuard {
  readonly #parts: GuardParts;
  readonly #filter = new Int32Array(2048);
  readonly #words: Int32Array;
  /** Position of a record in the words by the hash of its address, -1 for none; open addressing, a quarter full at most. */
  readonly #index: Int32Array;

  private constructor(owners: readonly AddressOwners[], parts: GuardParts) {
    this.#parts = parts;
    this.#words = new Int32Array(owners.length * ownerWords);
    this.#index = new Int32Array(2 ** Math.ceil(Math.log2(owners.length * 4))).fill(-1);
    for (const [i, owner] of owners.entries()) this.#add(owner, i * ownerWords);
  }

  /** Null where no address has owners: the packet path then asks nothing. */
  static of(owners: readonly AddressOwners[], parts: GuardParts): AddressGuard | null {
    return owners.length === 0 ? null : new AddressGuard(owners, parts);
  }

  /**
   * Counts a packet whose source address has owners, none of which sent it, and takes the source address away: the tap must
   * not take the owner for the sender. False for any other packet.
   */
  count(p: Packet, packets: number, now: number): boolean {
    if (!this.#isSpoofed(p)) return false;
    const { flows, ledger, judgeSides } = this.#parts;
    const path = spoofedPath + (sourceIsLower(p) ? 0 : 1);
    const base = flows.locate(p, path, now);
    const { words, sums, side } = flows;
    if (flows.isNew) {
      judgeSides(base);
      if (isFromServer(p.sourcePort, p.targetPort, p.protocol === Protocol.tcp) === (side === 0))
        words[base + Field.flags]! |= Flag.clientIsHigher;
    }
    sums[((base + Field.bytes) >> 1) + side]! += p.ipLength;
    words[base + Field.packets + side]! += packets;
    words[base + Field.lastSeen] = now;
    ledger.spoofed.add(p, packets);
    p.source0 = p.source1 = p.source2 = p.source3 = 0;
    return true;
  }

  #isSpoofed(p: Packet): boolean {
    const { source3 } = p;
    const hash = Math.imul(source3, filterFactor);
    const bit = hash >>> filterShift;
    if ((this.#filter[bit >> 5]! & (1 << (bit & 31))) === 0 || p.macAt < 0) return false;
    const words = this.#words;
    const index = this.#index;
    const mask = index.length - 1;
    let at = bit & mask;
    let base = index[at]!;
    while (
      base >= 0 &&
      !(
        words[base + 3] === source3 &&
        words[base + Owner.version] === p.version &&
        words[base + 2] === p.source2 &&
        words[base + 1] === p.source1 &&
        words[base] === p.source0
      )
    ) {
      at = (at + 1) & mask;
      base = index[at]!;
    }
    if (base < 0) return false;
    const high = p.view.getUint16(p.macAt);
    const low = p.view.getInt32(p.macAt + 2);
    const end = base + Owner.first + 2 * words[base + Owner.macs]!;
    for (let mac = base + Owner.first; mac < end; mac += 2)
      if (words[mac + 1] === low && words[mac] === high) return false;
    return true;
  }

  /** An address with too many MACs is not judged: the one that is left out might be the sender. */
  #add({ address, macs }: AddressOwners, base: number): void {
    if (macs.length > macsMax) return;
    const { version, words: parsed } = parseWords(address);
    const words = this.#words;
    words.set([...parsed, version, macs.length], base);
    for (const [i, mac] of macs.entries()) {
      const digits = mac.replaceAll(':', '');
      words[base + Owner.first + 2 * i] = Number.parseInt(digits.slice(0, 4), 16);
      words[base + Owner.first + 2 * i + 1] = Number.parseInt(digits.slice(4), 16);
    }
    const bit = Math.imul(parsed[3]!, filterFactor) >>> filterShift;
    this.#filter[bit >> 5]! |= 1 << (bit & 31);
    const index = this.#index;
    let at = bit & (index.length - 1);
    while (index[at]! >= 0) at = (at + 1) & (index.length - 1);
    index[at] = base;
  }
}
