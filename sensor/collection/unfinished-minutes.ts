/**
 * The minutes that are not in the spool yet, on disk after each live window, so that a sensor that is killed loses the
 * window it was in and not the minute.
 *
 * A part is the sum of the windows of a minute: totals and local addresses. Applications, owners of addresses and what the
 * detector says are in the report of the whole minute only; the packets count as truncated.
 *
 * The file is used by a start in the same boot and by the same clock, and only while the spool's last commit is the one that
 * the file names: then nothing in it was committed.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { DroppedCounters, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import type { ClockStamp } from '#sensor/host-time/index.ts';
import { isSameClock, type Spool } from '#sensor/spool/index.ts';
import { joinParts, type LocalWindow } from './merge.ts';
import { minuteOf } from './timelines.ts';

const format = 1;
/** So long after a minute a part of it may still be committed. */
const droppedKeptSeconds = 600;

interface UnfinishedMinutesDeps {
  /** Null: nothing is kept. */
  stateDirectory: string | null;
  spool: Pick<Spool, 'lastCommit'>;
  reporter: Reporter;
}

interface Stored {
  format: number;
  /** The spool's last commit. */
  after: string | null;
  stamp: ClockStamp;
  minutes: TelemetryMinute[];
  /** Parts of the running minute that were committed without a gap: totals and addresses. */
  committed?: TelemetryMinute[];
  /** What was committed of what filters dropped, of each minute of an uplink that was. */
  dropped?: DroppedPart[];
}

/** Of one uplink and minute, by address. */
interface DroppedPart {
  minute: number;
  capture: string;
  hosts: [string, DroppedCounters][];
}

export class UnfinishedMinutes {
  readonly #deps: UnfinishedMinutesDeps;
  readonly #path: string | null;
  readonly #parts = new Map<string, TelemetryMinute>();
  readonly #committed = new Map<string, TelemetryMinute>();
  readonly #dropped = new Map<string, DroppedPart>();
  #isChanged = false;
  /** The spool's last commit when the file was written. */
  #savedAfter: string | null = null;
  #isFailing = false;

  constructor(deps: UnfinishedMinutesDeps) {
    this.#deps = deps;
    this.#path = deps.stateDirectory && join(deps.stateDirectory, 'unfinished-minutes.json');
  }

  /**
   * What a killed sensor had seen and not committed, oldest first; nothing where that is not certain. `cut`: parts that were committed
   * by another clock, so that their minutes have no rest.
   */
  recover(now: ClockStamp): { seen: TelemetryMinute[]; cut: TelemetryMinute[] } {
    const stored = this.#read();
    if (!stored || stored.after !== this.#deps.spool.lastCommit()) return { seen: [], cut: [] };
    const { minutes: seen, committed = [], dropped = [] } = stored;
    if (!isSameClock(stored.stamp, now)) return { seen: [], cut: committed };
    for (const part of dropped) this.#dropped.set(keyOf(part), part);
    for (const part of seen) this.#parts.set(keyOf(part), part);
    for (const part of committed) this.#committed.set(keyOf(part), part);
    return { seen: seen.sort((a, b) => a.minute - b.minute), cut: [] };
  }

  add(window: LocalWindow): void {
    const { capture, role, observedMs, totals } = window;
    const part: TelemetryMinute = {
      ...{ minute: minuteOf(window.startedAtMs), capture, role, observedMs, usage: [] },
      totals: { ...totals, detailTruncated: totals.ipPackets },
      hosts: window.hosts.map((host) => ({ ...host, isLocal: true, deviceKey: '' })),
    };
    const earlier = this.#parts.get(keyOf(part));
    this.#parts.set(keyOf(part), earlier ? joinParts(earlier, part) : part);
    this.#isChanged = true;
  }

  /** A minute or a part of it is committed; its windows come no second time. */
  noteCommitted(part: TelemetryMinute): void {
    const key = keyOf(part);
    const slim = { ...part, usage: [] };
    const earlier = this.#committed.get(key);
    const isWhole = (earlier?.observedMs ?? 0) + part.observedMs >= 60_000;
    if (isWhole) this.#committed.delete(key);
    else this.#committed.set(key, earlier ? joinParts(earlier, slim) : slim);
    this.#parts.delete(key);
    this.#isChanged = true;
  }

  /** What was committed of a minute of a capture. */
  committedOf(capture: string, minute: number): TelemetryMinute | null {
    return this.#committed.get(keyOf({ capture, minute })) ?? null;
  }

  /** Parts of minutes before this one, which another sensor committed before it ended. */
  committedBefore(minute: number): TelemetryMinute[] {
    return [...this.#committed.values()].filter((part) => part.minute < minute);
  }

  /**
   * The part of what a filter dropped in a minute of an uplink that was not committed before; with this call it is. Nothing where a part was
   * committed and it is not known which.
   */
  takeDropped(
    { minute, capture }: Pick<TelemetryMinute, 'minute' | 'capture'>,
    found: ReadonlyMap<string, DroppedCounters>,
    wasCommitted: boolean,
  ): Map<string, DroppedCounters> {
    const key = keyOf({ minute, capture });
    const known = this.#dropped.get(key);
    if (!known && wasCommitted) return new Map();
    // What found no room on disk is not committed.
    const before = new Map(wasCommitted ? known!.hosts : []);
    this.#dropped.set(key, { minute, capture, hosts: [...new Map([...before, ...found])] });
    this.#isChanged = true;
    const left = [...found].map(([address, dropped]) => [address, lessDropped(dropped, before.get(address))]);
    return new Map(left.filter((one): one is [string, DroppedCounters] => one[1] !== null));
  }

  /** The minutes before this one were committed. */
  dropBefore(minute: number): void {
    for (const [key, part] of this.#dropped)
      if (part.minute < minute - droppedKeptSeconds) this.#dropped.delete(key);
    for (const [key, part] of this.#committed) if (part.minute < minute) this.#committed.delete(key);
    for (const [key, part] of this.#parts) if (part.minute < minute) this.#parts.delete(key);
  }

  /** The windows are committed, or the clock was set and they are of another time. */
  clear(): void {
    this.#parts.clear();
    this.#isChanged = true;
  }

  /** Writes what has changed. Not synced: a host that dies loses the minute. */
  save(stamp: ClockStamp): void {
    const after = this.#deps.spool.lastCommit();
    if (!this.#path || (!this.#isChanged && after === this.#savedAfter)) return;
    const stored: Stored = {
      format,
      after,
      stamp,
      minutes: [...this.#parts.values()],
      committed: [...this.#committed.values()],
      dropped: [...this.#dropped.values()],
    };
    const next = `${this.#path}.new`;
    try {
      writeFileSync(next, JSON.stringify(stored), { mode: 0o600 });
      renameSync(next, this.#path);
      this.#isChanged = false;
      this.#savedAfter = after;
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing)
        this.#deps.reporter.warn('the running minute is not kept on disk, a killed sensor would lose it', {
          why: describeError(error),
        });
      this.#isFailing = true;
    }
  }

  #read(): Stored | null {
    try {
      const stored = this.#path && (JSON.parse(readFileSync(this.#path, 'utf8')) as Stored);
      return stored && stored.format === format && Array.isArray(stored.minutes) ? stored : null;
    } catch {
      // Missing or damaged: the minute is a gap, as its start names it.
      return null;
    }
  }
}

const keyOf = ({ minute, capture }: Pick<TelemetryMinute, 'minute' | 'capture'>) => `${minute} ${capture}`;

/** What is left of these counters; null for nothing. */
function lessDropped(found: DroppedCounters, before: DroppedCounters | undefined): DroppedCounters | null {
  const { rxBytes, txBytes, rxPackets, txPackets } = found;
  if (!before) return found;
  if (rxPackets + txPackets <= before.rxPackets + before.txPackets) return null;
  return {
    ...{ rxBytes: rxBytes - before.rxBytes, txBytes: txBytes - before.txBytes },
    ...{ rxPackets: rxPackets - before.rxPackets, txPackets: txPackets - before.txPackets },
  };
}
