/** Adds packets of a batch to the details of their slots: all of them at first, then some, chosen at random. */
import { Direction } from './direction.ts';
import { Entry, entryWords, Noted, type PacketBatch, wideWords } from './packet-batch.ts';
import { Kind } from './packet-kind.ts';
import { type Sampler, sampledFrom, sampleEvery } from './sampler.ts';
import { Bin, type SlotTable } from './slot-table.ts';
import type { WatchedSlots } from './watched-slots.ts';

const ipv4 = 4;
/** Protocols stand where other kinds have ports; with it, protocol 0 is none without. */
export const protocolMark = 256;

export class PacketDetails {
  /** The open second. */
  second = 0;
  readonly #batch: PacketBatch;
  readonly #sampler: Sampler;
  readonly #watched: WatchedSlots;

  constructor(batch: PacketBatch, sampler: Sampler, watched: WatchedSlots) {
    this.#batch = batch;
    this.#sampler = sampler;
    this.#watched = watched;
  }

  /** Adds the packet of the entry at `at`, after so many packets of its slot and kind in this second; one that completes a handshake after as many such. */
  add(
    table: SlotTable,
    slot: number,
    direction: number,
    at: number,
    kind: number,
    packets: number,
    inBin: number,
  ): void {
    const isOpened = ((this.#batch.words[at + Entry.meta]! >> Noted.opened) & 1) !== 0;
    const seen = isOpened
      ? table.counters.get(table.binOf(slot, direction, this.second) + Bin.opened)
      : inBin;
    if (seen > sampledFrom) this.addSampled(table, slot, direction, at, kind, packets);
    else this.addSample(table, slot, direction, at, kind, packets);
  }

  /** Adds the packet if it is chosen, for all that are not. */
  addSampled(
    table: SlotTable,
    slot: number,
    direction: number,
    at: number,
    kind: number,
    packets: number,
  ): void {
    if (this.#sampler.next()) this.addSample(table, slot, direction, at, kind, packets * sampleEvery);
  }

  /** Adds the packet for `weight` packets. */
  addSample(
    table: SlotTable,
    slot: number,
    direction: number,
    at: number,
    kind: number,
    weight: number,
  ): void {
    const detail = this.#watched.detailOf(table, slot, direction);
    if (detail === null) return;
    const { words, wide } = this.#batch;
    const ports = words[at + Entry.ports]!;
    const isReflection = kind === Kind.reflection || kind === Kind.twoWayReflection;
    const meta = words[at + Entry.meta]!;
    const port =
      kind === Kind.protocol ? protocolMark | (meta & 0xff) : isReflection ? ports >>> 16 : ports & 0xffff;
    // Of other UDP the source's port tells which service reflects.
    if (kind === Kind.datagram || kind === Kind.reply) detail.addSourcePort(ports >>> 16, weight);
    const end = direction === Direction.inbound ? 0 : 1;
    const { second } = this;
    // The weight of one packet: a connection is completed once.
    const completed = ((meta >> Noted.opened) & 1) === 0 ? 0 : weight / words[at + Entry.packets]!;
    if (((meta >> 8) & 0xff) === ipv4)
      detail.add(kind, port, 0, 0, 0, words[at + end]!, weight, second, completed);
    else {
      const remote = (at / entryWords) * wideWords + end * 4;
      const [w0, w1] = [wide[remote]!, wide[remote + 1]!];
      detail.add(kind, port, w0, w1, wide[remote + 2]!, wide[remote + 3]!, weight, second, completed);
    }
  }
}
