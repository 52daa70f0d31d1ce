/** Counts what servers send from addresses that are not theirs, by MAC and IP version. */
import type { LocalScope, Packet } from '#sensor/capture/index.ts';
import type { DetailLimits } from './detail-limits.ts';
import { Direction } from './direction.ts';
import { Entry, kindShift, Noted, type PacketBatch } from './packet-batch.ts';
import type { PacketDetails } from './packet-details.ts';
import { Senders } from './senders.ts';
import { SlotTable } from './slot-table.ts';
import type { WatchedSlots } from './watched-slots.ts';

export const countedSendersMax = 64;
const quietSecondsMax = 6;

export interface SenderCountersParts {
  scope: LocalScope | null;
  bins: number;
  key: number;
  batch: PacketBatch;
  details: PacketDetails;
  watched: WatchedSlots;
  /** Of addresses in no group. */
  limits: DetailLimits;
}

export class SenderCounters {
  /** The words of a slot are those of its MAC; its counters are in the first direction, its detail is of the outbound one. */
  readonly table: SlotTable;
  readonly #parts: SenderCountersParts;
  readonly #senders: Senders | null;
  #second = 0;

  constructor(parts: SenderCountersParts) {
    this.#parts = parts;
    this.table = new SlotTable(countedSendersMax, 1, parts.bins, parts.key);
    this.#senders = Senders.of(parts.scope, this.table, parts.key);
  }

  open(second: number): void {
    this.#second = second;
    this.table.open(second);
    this.#senders?.tidy();
    if (this.table.count > countedSendersMax / 2) this.#removeQuiet();
  }

  /** What a waiting packet notes of its sender (`Entry.sender`). */
  ofPacket(p: Packet): number {
    return this.#senders === null ? 0 : this.#senders.ofPacket(p);
  }

  /** The same of what one side of a flow sent. */
  ofFlow(words: Int32Array, base: number, side: number): number {
    return this.#senders === null ? 0 : this.#senders.ofFlow(words, base, side);
  }

  /** Counts the waiting packet at `at`. It belongs to no pair, because its source does not converse. */
  count(at: number): void {
    const { batch, details, watched, limits } = this.#parts;
    const { table } = this;
    const { words } = batch;
    const slot = words[at + Entry.sender]! - 1;
    const meta = words[at + Entry.meta]!;
    const kind = (meta >> kindShift) & 15;
    const packets = words[at + Entry.packets]!;
    const opened = (meta >> Noted.opened) & 3;
    const unknown = words[at + Entry.unknown]!;
    const inBin = table.add(slot, 0, kind, packets, words[at + Entry.bytes]!, unknown, opened);
    if (table.detail(slot, Direction.outbound) === 0) {
      const packetsMin = limits.packets[Direction.outbound]![kind]!;
      const bytesMin = limits.bytes[Direction.outbound]!;
      if (inBin < packetsMin && !table.hasBytes(slot, 0, kind, bytesMin)) return;
      watched.watch(table, slot, Direction.outbound, this.#second);
    }
    details.add(table, slot, Direction.outbound, at, kind, packets, inBin);
  }

  #removeQuiet(): void {
    const { table } = this;
    const kept: number[] = [];
    for (let slot = 0; slot < table.count; slot += 1)
      if (table.lastSecond(slot) > this.#second - quietSecondsMax) kept.push(slot);
      else this.#parts.watched.unwatch(table, slot, Direction.outbound);
    table.keepOnly(kept);
  }
}
