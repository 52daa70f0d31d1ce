/**
 * Traffic of the sensor's own port scans: packets between a source address of the host and an address that it scans now.
 *
 * They count in the capture's totals and on their addresses, where they are named as a part, in one flow of each pair and
 * protocol: a flow of its own, whose ports are zero. They are no application, and the detector does not count them.
 */
import { parseWords } from './address-words.ts';
import type { Packet } from './decode/packet.ts';
import { Field, noteMac, ownScanPath } from './flows/flow-record.ts';
import type { FlowTable } from './flows/flow-table.ts';

/** Two canonical addresses of the same family. */
export interface OwnScan {
  sourceAddress: string;
  address: string;
}

/** More than a sensor scans at once. */
const pairsMax = 64;
const wordsOfPair = 9;

export class OwnScans {
  readonly #words: Int32Array;
  readonly #flows: FlowTable;
  readonly #keepsOwners: boolean;
  readonly #judgeSides: (base: number) => void;

  private constructor(
    words: Int32Array,
    flows: FlowTable,
    keepsOwners: boolean,
    judgeSides: (base: number) => void,
  ) {
    this.#words = words;
    this.#flows = flows;
    this.#keepsOwners = keepsOwners;
    this.#judgeSides = judgeSides;
  }

  /** Null where there is none: the packet path then asks nothing. */
  static of(
    scans: readonly OwnScan[],
    flows: FlowTable,
    keepsOwners: boolean,
    judgeSides: (base: number) => void,
  ): OwnScans | null {
    if (scans.length === 0) return null;
    const words = scans.slice(0, pairsMax).flatMap(({ sourceAddress, address }) => {
      const source = parseWords(sourceAddress);
      return [source.version, ...source.words, ...parseWords(address).words];
    });
    return new OwnScans(Int32Array.from(words), flows, keepsOwners, judgeSides);
  }

  /** Adds a packet of a scan to the flow of its two addresses. False for any other packet. */
  count(p: Packet, packets: number, now: number): boolean {
    if (!this.#has(p)) return false;
    stripPorts(p);
    const flows = this.#flows;
    const base = flows.locate(p, ownScanPath, now);
    const { words, sums, side } = flows;
    if (flows.isNew) this.#judgeSides(base);
    if (this.#keepsOwners && p.macAt >= 0) noteMac(words, base, side, p);
    sums[((base + Field.bytes) >> 1) + side]! += p.ipLength;
    words[base + Field.packets + side]! += packets;
    words[base + Field.lastSeen] = now;
    return true;
  }

  /** Whether the packet is between the two addresses of a scan, in either direction. */
  #has(p: Packet): boolean {
    const words = this.#words;
    for (let at = 0; at < words.length; at += wordsOfPair) {
      if (words[at] !== p.version) continue;
      const isForward = isAt(words, at + 1, p.source0, p.source1, p.source2, p.source3);
      if (!isForward && !isAt(words, at + 5, p.source0, p.source1, p.source2, p.source3)) continue;
      const other = isForward ? at + 5 : at + 1;
      if (isAt(words, other, p.target0, p.target1, p.target2, p.target3)) return true;
    }
    return false;
  }
}

function isAt(words: Int32Array, at: number, w0: number, w1: number, w2: number, w3: number): boolean {
  return (
    words[at + 3] === (w3 | 0) &&
    words[at + 2] === (w2 | 0) &&
    words[at + 1] === (w1 | 0) &&
    words[at] === (w0 | 0)
  );
}

/** Takes away what makes its flow one of many, and all that names an application. */
function stripPorts(packet: Packet): void {
  packet.sourcePort = packet.targetPort = 0;
  packet.tcpFlags = -1;
  packet.dataAt = packet.dataEnd = packet.payloadEnd = 0;
}
