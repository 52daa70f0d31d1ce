/**
 * Books what flows moved: to their addresses, to the owners of those, and to the row of client, server, service and
 * name.
 *
 * A flow is booked at the minute's end, when it leaves the table, and before it changes its name. What finds no room
 * is counted as truncated; the addresses have theirs by then.
 */
import { evidenceOf, Field, Flag } from './flow-record.ts';
import type { FlowTable } from './flow-table.ts';
import { type Ledger, share } from './ledger.ts';

export interface BookingOptions {
  flows: FlowTable;
  ledger: Ledger;
  /** Note from which MACs addresses send (bridges). */
  keepsOwners: boolean;
  /** Rows of which noise takes no new one. */
  noiseRowsMax: number;
  /** Packets whose detail found no room. */
  onTruncated(packets: number): void;
}

export class Booking {
  readonly #options: BookingOptions;

  constructor(options: BookingOptions) {
    this.#options = options;
  }

  /** Books what the flow moved since the last time and sets its counters to zero. */
  book(base: number): void {
    const { flows, ledger, keepsOwners, noiseRowsMax, onTruncated } = this.#options;
    const { words, sums } = flows;
    const flags = words[base + Field.flags]!;
    const sum = (base + Field.bytes) >> 1;
    const up = sums[sum]!;
    const down = sums[sum + 1]!;
    const upPackets = words[base + Field.packets]!;
    const downPackets = words[base + Field.packets + 1]!;
    const packets = upPackets + downPackets;
    if (packets === 0) {
      if ((flags & Flag.inner) !== 0) this.#bookName(base, flags);
      return;
    }
    const version = (words[base + Field.meta]! >> 8) & 0xff;
    // A packet or two that nobody answered and nothing names get a part of the rows, or a flood would take those of the rest.
    const isNoise = packets <= 2 && (flags & Flag.answered) === 0 && words[base + Field.name] === 0;
    const lowerIsLocal = (flags & Flag.lowerIsLocal) !== 0;
    const higherIsLocal = (flags & Flag.higherIsLocal) !== 0;
    const hasHosts = this.bookHosts(
      version,
      words,
      base,
      lowerIsLocal,
      higherIsLocal,
      up,
      down,
      packets,
      isNoise,
    );
    if (keepsOwners) this.#bookOwners(version, base, lowerIsLocal, higherIsLocal);
    const mayHaveRow = !isNoise || ledger.usageCount < noiseRowsMax;
    if (mayHaveRow) {
      this.#fillShare(base, up, down, packets);
      ledger.addUsage();
    }
    if (!mayHaveRow || !hasHosts) onTruncated(packets);
    sums[sum] = sums[sum + 1] = 0;
    words[base + Field.packets] = words[base + Field.packets + 1] = 0;
    words[base + Field.lastSent] = words[base + Field.lastSent + 1] = 0;
  }

  /** A named flow inside a tunnel gets a row without bytes, when one of its ends is ours. */
  #bookName(base: number, flags: number): void {
    const { words } = this.#options.flows;
    const isOurs = (flags & (Flag.lowerIsLocal | Flag.higherIsLocal)) !== 0;
    const hasSent = words[base + Field.lastSent] !== 0 || words[base + Field.lastSent + 1] !== 0;
    if (isOurs && hasSent && words[base + Field.name] !== 0) {
      this.#fillShare(base, 0, 0, 0);
      this.#options.ledger.addUsage();
    }
    words[base + Field.lastSent] = words[base + Field.lastSent + 1] = 0;
  }

  /**
   * Adds bytes in both directions to two addresses, the second four words behind the first. False when a local one
   * found no room; a remote one that finds none is in the rows all the same.
   */
  bookHosts(
    version: number,
    words: Int32Array,
    base: number,
    lowerIsLocal: boolean,
    higherIsLocal: boolean,
    up: number,
    down: number,
    packets: number,
    isNoise: boolean,
  ): boolean {
    const { ledger } = this.#options;
    if (isSameAddress(words, base)) {
      return (
        ledger.addHost(lowerIsLocal, version, words, base, up + down, up + down, packets, isNoise) ||
        !lowerIsLocal
      );
    }
    const passesLower = isNoise && !lowerIsLocal && ledger.isUnheard(words, base);
    const lower =
      passesLower ||
      ledger.addHost(lowerIsLocal, version, words, base, down, up, packets, isNoise) ||
      !lowerIsLocal;
    const passesHigher = isNoise && !higherIsLocal && ledger.isUnheard(words, base + 4);
    const higher =
      passesHigher ||
      ledger.addHost(higherIsLocal, version, words, base + 4, up, down, packets, isNoise) ||
      !higherIsLocal;
    return lower && higher;
  }

  #bookOwners(version: number, base: number, lowerIsLocal: boolean, higherIsLocal: boolean): void {
    const { words } = this.#options.flows;
    for (let side = 0; side < 2; side += 1) {
      const at = base + Field.mac + side * 2;
      const isConflict = (words[base + Field.flags]! & (Flag.macConflict << side)) !== 0;
      if (words[at] === 0 && words[at + 1] === 0) continue;
      const isLocal = side === 0 ? lowerIsLocal : higherIsLocal;
      this.#options.ledger.noteOwner(
        isLocal,
        version,
        words,
        base + side * 4,
        words[at]!,
        words[at + 1]!,
        isConflict,
      );
      words[at] = words[at + 1] = 0;
    }
    words[base + Field.flags]! &= ~(Flag.macConflict * 3);
  }

  #fillShare(base: number, up: number, down: number, packets: number): void {
    const { words } = this.#options.flows;
    const flags = words[base + Field.flags]!;
    const meta = words[base + Field.meta]!;
    const ports = words[base + Field.ports]!;
    const client = (flags & Flag.clientIsHigher) !== 0 ? 1 : 0;
    for (let word = 0; word < 4; word += 1) {
      share.client[word] = words[base + client * 4 + word]!;
      share.server[word] = words[base + (1 - client) * 4 + word]!;
    }
    share.version = (meta >> 8) & 0xff;
    share.protocol = meta & 0xff;
    share.serverPort = client === 0 ? ports & 0xffff : ports >>> 16;
    share.clientIsLocal = (flags & (client === 0 ? Flag.lowerIsLocal : Flag.higherIsLocal)) !== 0;
    share.serverIsLocal = (flags & (client === 0 ? Flag.higherIsLocal : Flag.lowerIsLocal)) !== 0;
    share.name = words[base + Field.name]! - 1;
    share.evidence = evidenceOf(words, base);
    share.clientBytes = client === 0 ? up : down;
    share.serverBytes = client === 0 ? down : up;
    share.packets = packets;
    share.clientLastSent = words[base + Field.lastSent + client]!;
    share.serverLastSent = words[base + Field.lastSent + 1 - client]!;
  }
}

/** The last words differ most often, so they are looked at first. */
function isSameAddress(words: Int32Array, base: number): boolean {
  for (let word = 3; word >= 0; word -= 1) if (words[base + word] !== words[base + 4 + word]) return false;
  return true;
}
