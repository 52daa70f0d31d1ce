/**
 * Decides the kind of a packet that goes the long way: whether the other end of its flow has sent, or answered an opening.
 * `KnownHosts` does the same for all others.
 */
import { Protocol } from '#sensor/capture/index.ts';
import { Direction } from './direction.ts';
import { type FlowMemory, Mark, marksOfEnd } from './flow-memory.ts';
import { Limit } from './known-hosts.ts';
import { Entry, kindShift, type PacketBatch } from './packet-batch.ts';
import { Found } from './packet-finder.ts';
import { isRemembered, Kind, twoWayKindOf } from './packet-kind.ts';
import type { SlotTable } from './slot-table.ts';

export interface FlowKindsParts {
  batch: PacketBatch;
  hosts: SlotTable;
  flows: FlowMemory;
  /** By `Limit`. */
  limits: Int32Array;
}

/** In what `remember` returns: the kind, and above it 1 for the packet that completes a handshake. */
export const openedShift = 4;
export const kindMask = (1 << openedShift) - 1;

export class FlowKinds {
  readonly #parts: FlowKindsParts;

  constructor(parts: FlowKindsParts) {
    this.#parts = parts;
  }

  /** Notes who sent the packet. Its ends have these slots, -1 for none. */
  remember(at: number, meta: number, source: number, target: number): number {
    const kind = (meta >> kindShift) & 15;
    if (isRemembered[kind] === 0) return kind;
    const { batch, flows } = this.#parts;
    const place = batch.words[at + Entry.place]!;
    const side = (meta >> Found.side) & 1;
    if (kind === Kind.openingAnswer) {
      flows.note(place, Mark.answered, side);
      return kind;
    }
    const marks = flows.marks[place]!;
    const other = marksOfEnd(marks, 1 - side);
    const isAnswered = (meta & 0xff) === Protocol.tcp && (other & Mark.anyAnswered) !== 0;
    // A server that answered an opening waits for what follows.
    const isTwoWay = isAnswered || (other & Mark.anySent) !== 0;
    // One-way packets of a flood are not remembered: they would fill the memory until the flood looks two-way.
    if (!isTwoWay && this.#isFlood(source, target, kind)) return kind;
    flows.note(place, Mark.sent, side);
    const opened = isAnswered && (marksOfEnd(marks, side) & Mark.anySent) === 0 ? 1 << openedShift : 0;
    return (isTwoWay ? twoWayKindOf[kind]! : kind) | opened;
  }

  /** True when an end had so many packets of this kind in the open second that more say nothing about their flows. */
  #isFlood(source: number, target: number, kind: number): boolean {
    const { hosts, limits } = this.#parts;
    if (target >= 0) {
      const limit = limits[hosts.group(target) * Limit.group + kind]!;
      if (hosts.packetsSoFar(target, Direction.inbound, kind) >= limit) return true;
    }
    if (source < 0) return false;
    const limit = limits[hosts.group(source) * Limit.group + Limit.direction + kind]!;
    return hosts.packetsSoFar(source, Direction.outbound, kind) >= limit;
  }
}
