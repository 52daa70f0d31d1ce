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
import { KeyedTable } from './keyed-table.ts';
import type { Ledger } from './reports/ledger.ts';

/** Canonical address, and MACs as `52:54:00:00:00:01`. */
export interface AddressOwners {
  address: string;
  macs: readonly string[];
}

/** Words of a record: the number of MACs, and two words for each. */
const macsMax = 8;
const ownerWords = 1 + 2 * macsMax;
const addressesMax = 1 << 16;
/** A filter of 8 KiB: most source addresses are remote, and need no search. */
const filterFactor = 0x9e3779b1;
const filterShift = 16;

export interface GuardParts {
  flows: FlowTable;
  ledger: Ledger;
  seed: number;
  judgeSides(base: number): void;
}

export class AddressGuard {
  readonly #parts: GuardParts;
  readonly #owners: KeyedTable;
  readonly #filter = new Int32Array(2048);

  private constructor(owners: readonly AddressOwners[], parts: GuardParts) {
    this.#parts = parts;
    const shape = { keyWords: 5, wordCount: ownerWords, sumCount: 0, recordsMax: addressesMax };
    this.#owners = new KeyedTable(shape, parts.seed);
    for (const { address, macs } of owners) if (macs.length <= macsMax) this.#add(address, macs);
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
    const bit = Math.imul(p.source3, filterFactor) >>> filterShift;
    if ((this.#filter[bit >> 5]! & (1 << (bit & 31))) === 0 || p.macAt < 0) return false;
    const owners = this.#owners;
    const { key, words } = owners;
    key[0] = p.source0;
    key[1] = p.source1;
    key[2] = p.source2;
    key[3] = p.source3;
    key[4] = p.version;
    const at = owners.find() * ownerWords;
    if (at < 0) return false;
    const high = p.view.getUint16(p.macAt);
    const low = p.view.getInt32(p.macAt + 2);
    const end = at + 1 + 2 * words[at]!;
    for (let mac = at + 1; mac < end; mac += 2)
      if (words[mac + 1] === low && words[mac] === high) return false;
    return true;
  }

  #add(address: string, macs: readonly string[]): void {
    const { version, words: parsed } = parseWords(address);
    this.#owners.key.set([...parsed, version]);
    const at = this.#owners.locate() * ownerWords;
    if (at < 0) return;
    const { words } = this.#owners;
    words[at] = macs.length;
    for (const [i, mac] of macs.entries()) {
      const digits = mac.replaceAll(':', '');
      words[at + 1 + 2 * i] = Number.parseInt(digits.slice(0, 4), 16);
      words[at + 2 + 2 * i] = Number.parseInt(digits.slice(4), 16);
    }
    const bit = Math.imul(parsed[3]!, filterFactor) >>> filterShift;
    this.#filter[bit >> 5]! |= 1 << (bit & 31);
  }
}
