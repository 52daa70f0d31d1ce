/**
 * Finds servers that send from addresses which are not theirs. Such packets may have no protected end, so they count for the MAC that sent
 * them (`AttackCounters.senders`).
 *
 * The inventory names the MACs of servers (`LocalScope.owners`): what one sends from an address that is not protected is spoofed. Of a MAC
 * that it does not name, made-up sources are: many of them, from one that sends from protected addresses too, or of which nothing is known
 * where there is no inventory. A router's MAC, which brings packets to protected addresses, sends for others.
 */
import { Field, type LocalScope, mixHash, type Packet } from '#sensor/capture/index.ts';
import { ProtectedScope } from './protected-scope.ts';
import type { SlotTable } from './slot-table.ts';

/** MACs that are kept beside those of the inventory; then they are learnt anew. */
const learntMax = 512;
/** So many bits of hashed networks (/24, /32) are many sources: a server that has other addresses has fewer networks. */
const sourcesMin = 8;
const sourceBits = 128;

/** Words of a record: what is known of the MAC, the MAC, bits of its sources. */
const Word = { state: 0, high: 1, low: 2, sources: 4 } as const;
const recordWords = 8;
const State = { used: 1, isListed: 2, isServer: 4, isRouter: 8, isSpread: 16 } as const;

const ipv4 = 4;

export class Senders {
  readonly #table: SlotTable;
  /** Protected addresses and those that the inventory gives to servers. */
  readonly #own: ProtectedScope;
  readonly #hasInventory: boolean;
  readonly #key: number;
  readonly #records: Int32Array;
  readonly #mask: number;
  readonly #listed: readonly string[];
  #room = 0;
  /** The router that was seen last. */
  #routerHigh = -1;
  #routerLow = 0;
  readonly #ends = new Int32Array(8);

  /** Null where every address is protected. */
  static of(scope: LocalScope | null, table: SlotTable, key: number): Senders | null {
    return scope && new Senders(scope, table, key);
  }

  private constructor({ prefixes, addresses, owners = [] }: LocalScope, table: SlotTable, key: number) {
    this.#table = table;
    this.#key = key;
    const owned = owners.map(({ address }) => address);
    this.#own = new ProtectedScope({ prefixes, addresses: [...new Set([...addresses, ...owned])] });
    const macs = new Set(owners.flatMap((owner) => owner.macs));
    this.#hasInventory = macs.size > 0;
    const places = 2 ** Math.ceil(Math.log2((macs.size + learntMax) * 2));
    this.#mask = places - 1;
    this.#records = new Int32Array(places * recordWords);
    this.#listed = [...macs];
    this.#begin();
  }

  /** Forgets what was learnt of other MACs once there is no room for more: a sender may use any MAC. */
  tidy(): void {
    if (this.#room === 0) this.#begin();
  }

  /** One more than the slot of the packet's sender if its source is made up, else 0. */
  ofPacket(p: Packet): number {
    if (p.macAt < 0) return 0;
    const high = p.view.getUint16(p.macAt);
    const low = p.view.getInt32(p.macAt + 2);
    // Most packets come from one router.
    if (low === this.#routerLow && high === this.#routerHigh) return 0;
    const record = this.#locate(high, low);
    if (record < 0) return 0;
    if ((this.#records[record]! & State.isRouter) !== 0) {
      this.#routerLow = low;
      this.#routerHigh = high;
      return 0;
    }
    const ends = this.#ends;
    ends[0] = p.source0;
    ends[1] = p.source1;
    ends[2] = p.source2;
    ends[3] = p.source3;
    ends[4] = p.target0;
    ends[5] = p.target1;
    ends[6] = p.target2;
    ends[7] = p.target3;
    return this.#judge(record, p.version);
  }

  /** The same for what one side of a flow sent, whose MAC the flow knows on bridges. */
  ofFlow(words: Int32Array, base: number, side: number): number {
    const mac = base + Field.mac + side * 2;
    if (words[mac] === 0 && words[mac + 1] === 0) return 0;
    const record = this.#locate(words[mac]! & 0xffff, words[mac + 1]!);
    if (record < 0 || (this.#records[record]! & State.isRouter) !== 0) return 0;
    for (let word = 0; word < 4; word += 1) {
      this.#ends[word] = words[base + side * 4 + word]!;
      this.#ends[4 + word] = words[base + 4 - side * 4 + word]!;
    }
    return this.#judge(record, (words[base + Field.meta]! >> 8) & 0xff);
  }

  #judge(record: number, version: number): number {
    const records = this.#records;
    const ends = this.#ends;
    const own = this.#own;
    const state = records[record + Word.state]!;
    if (own.mayHold(version, ends[0]!, ends[1]!, ends[2]!, ends[3]!)) {
      if ((state & (State.isListed | State.isServer)) === 0 && (own.ends(version, ends, 0) & 1) !== 0)
        records[record + Word.state] = state | State.isServer;
      return 0;
    }
    if ((state & State.isListed) === 0) {
      if (
        own.mayHold(version, ends[4]!, ends[5]!, ends[6]!, ends[7]!) &&
        (own.ends(version, ends, 0) & 2) !== 0
      ) {
        records[record + Word.state] = state | State.isRouter;
        return 0;
      }
      if (this.#hasInventory && (state & State.isServer) === 0) return 0;
      if (isInternal(version, ends) || !this.#isSpread(record)) return 0;
    } else if (isInternal(version, ends)) return 0;
    return 1 + this.#table.locate(version, 0, 0, records[record + Word.high]!, records[record + Word.low]!);
  }

  /** True once the MAC has sent from many addresses. */
  #isSpread(record: number): boolean {
    const records = this.#records;
    if ((records[record + Word.state]! & State.isSpread) !== 0) return true;
    // An IPv4 address has no first word.
    const network = this.#ends[0]! | (this.#ends[0] === 0 ? this.#ends[3]! >>> 8 : 0);
    const bit = mixHash(this.#key, network) & (sourceBits - 1);
    records[record + Word.sources + (bit >>> 5)]! |= 1 << (bit & 31);
    let set = 0;
    for (let word = 0; word < sourceBits / 32; word += 1)
      for (let bits = records[record + Word.sources + word]!; bits !== 0; bits &= bits - 1) set += 1;
    if (set < sourcesMin) return false;
    records[record + Word.state]! |= State.isSpread;
    return true;
  }

  #begin(): void {
    this.#records.fill(0);
    this.#routerHigh = -1;
    this.#room = this.#listed.length + learntMax;
    for (const mac of this.#listed) {
      const digits = mac.replaceAll(':', '');
      const high = Number.parseInt(digits.slice(0, 4), 16);
      const low = Number.parseInt(digits.slice(4), 16) | 0;
      this.#records[this.#locate(high, low)]! |= State.isListed;
    }
  }

  /** The record of a MAC, made when it is missing; -1 without room. */
  #locate(high: number, low: number): number {
    const records = this.#records;
    let at = mixHash(mixHash(this.#key, high), low) & this.#mask;
    for (;;) {
      const record = at * recordWords;
      if (records[record] === 0) break;
      if (records[record + Word.low] === low && records[record + Word.high] === high) return record;
      at = (at + 1) & this.#mask;
    }
    if (this.#room === 0) return -1;
    this.#room -= 1;
    const record = at * recordWords;
    records[record] = State.used;
    records[record + Word.high] = high;
    records[record + Word.low] = low;
    return record;
  }
}

/** True for traffic of a private network, and for what asks for an address. */
function isInternal(version: number, ends: Int32Array): boolean {
  return isPrivate(version, ends, 0) && (isPrivate(version, ends, 4) || isGroup(version, ends, 4));
}

function isPrivate(version: number, ends: Int32Array, at: number): boolean {
  const [w0, w3] = [ends[at]!, ends[at + 3]!];
  if (version === ipv4) {
    if (w3 >>> 24 === 0 || w3 >>> 24 === 10 || w3 >>> 20 === 0xac1) return true;
    return w3 >>> 16 === 0xc0a8 || w3 >>> 16 === 0xa9fe || w3 >>> 22 === 0x191;
  }
  // fc00::/7, fe80::/10, and no address yet.
  return w0 >>> 25 === 0x7e || w0 >>> 22 === 0x3fa || (w0 | ends[at + 1]! | ends[at + 2]! | w3) === 0;
}

function isGroup(version: number, ends: Int32Array, at: number): boolean {
  return version === ipv4 ? ends[at + 3]! >>> 28 >= 14 : ends[at]! >>> 24 === 0xff;
}
