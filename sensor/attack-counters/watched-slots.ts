/** Gives details to the slots that are worth one, as long as there are any. */
import type { SlotTable } from './slot-table.ts';
import { TrafficDetail } from './traffic-detail.ts';

const detailsMax = 64;

export class WatchedSlots {
  readonly #details: TrafficDetail[] = [];
  readonly #free: number[] = [];

  /** True when no slot has a detail. */
  get isEmpty(): boolean {
    return this.#free.length === this.#details.length;
  }

  /** The detail of a slot, null without one. */
  detailOf(table: SlotTable, slot: number, direction: number): TrafficDetail | null {
    const number = table.detail(slot, direction);
    return number === 0 ? null : this.#details[number - 1]!;
  }

  /** Gives a slot a detail that counts from this second on. Returns false when it has one, or none is free. */
  watch(table: SlotTable, slot: number, direction: number, second: number): boolean {
    if (table.detail(slot, direction) !== 0) return false;
    let number = this.#free.pop();
    if (number === undefined) {
      if (this.#details.length === detailsMax) return false;
      number = this.#details.push(new TrafficDetail());
    }
    this.#details[number - 1]!.reset(table.version(slot), second);
    table.setDetail(slot, direction, number);
    return true;
  }

  /** Takes a slot's detail back. Returns false when it has none. */
  unwatch(table: SlotTable, slot: number, direction: number): boolean {
    const number = table.detail(slot, direction);
    if (number === 0) return false;
    table.setDetail(slot, direction, 0);
    this.#free.push(number);
    return true;
  }
}
