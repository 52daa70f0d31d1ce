/**
 * Adds the counters of flows to addresses, to the owners of addresses, and to the usage row of client, server, service
 * and name.
 *
 * A flow is accounted at the end of the minute, when it leaves the table, and before its name changes. Packets without
 * room for a usage row are counted as truncated; their addresses are counted first.
 */

import type { Ledger } from '../reports/ledger.ts';
import { usageInput } from '../reports/usage-table.ts';
import { evidenceOf, Field, Flag, isOwnScan, isSpoofed } from './flow-record.ts';
import type { FlowTable } from './flow-table.ts';

export interface FlowAccountingOptions {
  flows: FlowTable;
  ledger: Ledger;
  /** Record the source MAC of each address (bridges). */
  keepsOwners: boolean;
  /** Number of usage rows above which noise gets no new row. */
  noiseRowsMax: number;
  /** Packets whose details found no room. */
  onTruncated(packets: number): void;
}

export class FlowAccounting {
  readonly #options: FlowAccountingOptions;

  constructor(options: FlowAccountingOptions) {
    this.#options = options;
  }

  /** Accounts the flow's counters since the last call and sets them to zero. */
  account(base: number): void {
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
      if ((flags & Flag.inner) !== 0) this.#addInnerName(base, flags);
      return;
    }
    const version = (words[base + Field.meta]! >> 8) & 0xff;
    // Up to two packets without an answer or a name are noise. Noise gets a part of the rows, so that a flood can not
    // fill them.
    const isNoise = packets <= 2 && (flags & Flag.answered) === 0 && words[base + Field.name] === 0;
    const lowerIsLocal = (flags & Flag.lowerIsLocal) !== 0;
    const higherIsLocal = (flags & Flag.higherIsLocal) !== 0;
    const hasHosts = this.addHosts(
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
    if (keepsOwners) this.#noteOwners(version, base, lowerIsLocal, higherIsLocal);
    // The sensor's own scans are no application, and a spoofed sender's packets are one to a local receiver only.
    const isForeign = !lowerIsLocal && !higherIsLocal;
    const isOwn = isOwnScan(words, base);
    if (isOwn && lowerIsLocal) ledger.hosts.nameOwnScan(version, words, base, down, up, packets);
    if (isOwn && higherIsLocal) ledger.hosts.nameOwnScan(version, words, base + 4, up, down, packets);
    const hasNoRow = isOwn || (isForeign && isSpoofed(words, base));
    const mayHaveRow = hasNoRow || !isNoise || ledger.usage.count < noiseRowsMax;
    if (mayHaveRow && !hasNoRow) {
      this.#fillShare(base, up, down, packets);
      ledger.usage.add();
    }
    if (!mayHaveRow || !hasHosts) onTruncated(packets);
    sums[sum] = sums[sum + 1] = 0;
    words[base + Field.packets] = words[base + Field.packets + 1] = 0;
    words[base + Field.lastSent] = words[base + Field.lastSent + 1] = 0;
  }

  /** A named flow inside a tunnel gets a row without bytes when one of its ends is local. */
  #addInnerName(base: number, flags: number): void {
    const { words } = this.#options.flows;
    const isOurs = (flags & (Flag.lowerIsLocal | Flag.higherIsLocal)) !== 0;
    const hasSent = words[base + Field.lastSent] !== 0 || words[base + Field.lastSent + 1] !== 0;
    if (isOurs && hasSent && words[base + Field.name] !== 0) {
      this.#fillShare(base, 0, 0, 0);
      this.#options.ledger.usage.add();
    }
    words[base + Field.lastSent] = words[base + Field.lastSent + 1] = 0;
  }

  /**
   * Adds bytes in both directions to two addresses; the second starts four words after the first. Returns false when a
   * local address found no room. A remote address without room still appears in the usage rows.
   */
  addHosts(
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
    // Of a spoofed packet to its own source address only the receiver is local.
    if (lowerIsLocal === higherIsLocal && isSameAddress(words, base)) {
      return (
        ledger.hosts.add(lowerIsLocal, version, words, base, up + down, up + down, packets, isNoise) ||
        !lowerIsLocal
      );
    }
    const passesLower = isNoise && !lowerIsLocal && ledger.hosts.isUnheard(words, base);
    const lower =
      passesLower ||
      ledger.hosts.add(lowerIsLocal, version, words, base, down, up, packets, isNoise) ||
      !lowerIsLocal;
    const passesHigher = isNoise && !higherIsLocal && ledger.hosts.isUnheard(words, base + 4);
    const higher =
      passesHigher ||
      ledger.hosts.add(higherIsLocal, version, words, base + 4, up, down, packets, isNoise) ||
      !higherIsLocal;
    return lower && higher;
  }

  #noteOwners(version: number, base: number, lowerIsLocal: boolean, higherIsLocal: boolean): void {
    const { words } = this.#options.flows;
    for (let side = 0; side < 2; side += 1) {
      const at = base + Field.mac + side * 2;
      const isConflict = (words[base + Field.flags]! & (Flag.macConflict << side)) !== 0;
      if (words[at] === 0 && words[at + 1] === 0) continue;
      const isLocal = side === 0 ? lowerIsLocal : higherIsLocal;
      this.#options.ledger.hosts.noteOwner(
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
      usageInput.client[word] = words[base + client * 4 + word]!;
      usageInput.server[word] = words[base + (1 - client) * 4 + word]!;
    }
    usageInput.version = (meta >> 8) & 0xff;
    usageInput.protocol = meta & 0xff;
    usageInput.serverPort = client === 0 ? ports & 0xffff : ports >>> 16;
    usageInput.clientIsLocal = (flags & (client === 0 ? Flag.lowerIsLocal : Flag.higherIsLocal)) !== 0;
    usageInput.serverIsLocal = (flags & (client === 0 ? Flag.higherIsLocal : Flag.lowerIsLocal)) !== 0;
    usageInput.name = words[base + Field.name]! - 1;
    usageInput.evidence = evidenceOf(words, base);
    usageInput.clientBytes = client === 0 ? up : down;
    usageInput.serverBytes = client === 0 ? down : up;
    usageInput.packets = packets;
    usageInput.clientLastSent = words[base + Field.lastSent + client]!;
    usageInput.serverLastSent = words[base + Field.lastSent + 1 - client]!;
  }
}

/** Compare from the last word: it differs most often. */
function isSameAddress(words: Int32Array, base: number): boolean {
  for (let word = 3; word >= 0; word -= 1) if (words[base + word] !== words[base + 4 + word]) return false;
  return true;
}
