/**
 * What the filter at the uplink does, by second: dropped packets are in no counter, so they are judged here, or an attack that is dropped
 * would seem over.
 */
import type { AttackClass } from '#contracts/attack-classes.ts';
import { Bin } from '#sensor/attack-counters/index.ts';
import type { FilterCounts } from '#sensor/kernel/index.ts';
import { kindOfDrill } from './classify.ts';
import type { Incident } from './incident.ts';
import type { TargetWindow } from './target-window.ts';
import type { DirectionName } from './thresholds.ts';
import type { Amount, Counts } from './traffic.ts';
import { windowSeconds } from './trigger.ts';

/** What the rules of a class for one target did in a second. */
export interface FilteredSecond {
  target: string;
  direction: DirectionName;
  class: AttackClass;
  counts: FilterCounts;
  isDropping: boolean;
  /** Why it is only counted; blank where that is as wanted. */
  problem: string;
}

/** The counters of a second are read when it is over, so it is judged with the next one. */
const lagSeconds = 1;

export class FilteredTraffic {
  readonly #seconds = new Map<number, readonly FilteredSecond[]>();

  note(unixSecond: number, rows: readonly FilteredSecond[]): void {
    this.#seconds.set(unixSecond, rows);
    for (const second of this.#seconds.keys())
      if (second < unixSecond - windowSeconds - lagSeconds) this.#seconds.delete(second);
  }

  /** Targets of which something was dropped in this direction in the seconds of a window. */
  targets(direction: DirectionName, unixSecond: number): Set<string> {
    const rows = Array.from({ length: windowSeconds }, (_, i) => this.#droppedIn(direction, unixSecond - i));
    return new Set(rows.flat().map(({ target }) => target));
  }

  /** Packets and bytes that were dropped of a target's. */
  amountOf(target: string, direction: DirectionName, unixSecond: number): Amount {
    const rows = this.#droppedIn(direction, unixSecond).filter((row) => row.target === target);
    return {
      packets: rows.reduce((sum, { counts }) => sum + counts.dropped.packets, 0),
      bytes: rows.reduce((sum, { counts }) => sum + counts.dropped.bytes, 0),
    };
  }

  /** Adds what was dropped to the counters of a window, which are its own. */
  addTo(window: TargetWindow, unixSecond: number): TargetWindow {
    const { target, direction, seconds, isDrill } = window;
    if (target.kind !== 'host' || isDrill || this.#seconds.size === 0) return window;
    let isFiltered = false;
    for (const [i, { counts }] of seconds.entries())
      for (const row of this.#droppedIn(direction, unixSecond - (seconds.length - 1 - i))) {
        if (row.target !== target.value) continue;
        add(counts, row);
        isFiltered = true;
      }
    return isFiltered ? { ...window, isFiltered } : window;
  }

  #droppedIn(direction: DirectionName, unixSecond: number): readonly FilteredSecond[] {
    const rows = this.#seconds.get(unixSecond - lagSeconds) ?? [];
    return rows.filter((row) => row.direction === direction && row.counts.dropped.packets > 0);
  }
}

function add(counts: Counts, { class: name, counts: { dropped } }: FilteredSecond): void {
  const kind = kindOfDrill(name);
  counts[Bin.packets + kind]! += dropped.packets;
  counts[Bin.bytes + kind]! += dropped.bytes;
}

/** Adds a second to what the filter did against an incident. */
export function noteFiltered(incident: Incident, rows: readonly FilteredSecond[]): void {
  const own = rows.filter(
    ({ target, direction }) => target === incident.target.value && direction === incident.direction,
  );
  if (own.length === 0) return;
  const none = () => ({ packets: 0, bytes: 0 });
  incident.filter ??= {
    ...{ matched: none(), dropped: none(), passed: none() },
    ...{ current: { bps: 0, pps: 0 }, isDropping: false, problem: '' },
  };
  const { filter } = incident;
  filter.current = { bps: 0, pps: 0 };
  for (const { counts } of own) {
    for (const name of ['matched', 'dropped', 'passed'] as const) {
      filter[name].packets += counts[name].packets;
      filter[name].bytes += counts[name].bytes;
    }
    filter.current.pps += counts.matched.packets;
    filter.current.bps += counts.matched.bytes * 8;
  }
  filter.isDropping = own.some(({ isDropping }) => isDropping);
  filter.problem = own.find(({ problem }) => problem !== '')?.problem ?? '';
}
