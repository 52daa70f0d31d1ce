/**
 * Reads that take longer than a person likes to look at nothing: the page says so and asks again, and the read goes on meanwhile.
 * One that is not asked for again is left.
 */
import type { Clock } from '#common/clock/index.ts';

/** A request waits so long before it says that the read is under way. */
export const patienceMs = 1_500;
/** The page asks again after a second; who has not asked for so long has gone elsewhere. */
export const leftAfterMs = 10_000;
/** Of one person; one more leaves the oldest. */
const readsMax = 3;

export type Joined<T> = { state: 'done'; value: T } | { state: 'running'; seconds: number };

export type RunningReads<T> = ReturnType<typeof createRunningReads<T>>;

interface Entry<T> {
  person: string;
  value: Promise<T>;
  leaving: AbortController;
  begunMs: number;
  askedMs: number;
}

export function createRunningReads<T>(clock: Clock) {
  const entries = new Map<string, Entry<T>>();
  const nameOf = (person: string, key: string) => `${person} ${key}`;

  const drop = (name: string, entry: Entry<T>) => {
    entry.leaving.abort();
    if (entries.get(name) === entry) entries.delete(name);
  };

  const begin = (person: string, name: string, read: (signal: AbortSignal) => Promise<T>): Entry<T> => {
    const own = [...entries].filter(([, one]) => one.person === person);
    if (own.length >= readsMax) drop(...own[0]!);
    const leaving = new AbortController();
    const now = clock.monotonicMs();
    const entry = { person, value: read(leaving.signal), leaving, begunMs: now, askedMs: now };
    // Each request that joins gets its error; without one it is not needed.
    entry.value.catch(() => {});
    entries.set(name, entry);
    return entry;
  };

  const leaveUnasked = async (name: string, entry: Entry<T>) => {
    const asked = entry.askedMs;
    await clock.wait(leftAfterMs, entry.leaving.signal);
    if (entry.askedMs === asked) drop(name, entry);
  };

  return {
    /** The value of the read of this person under this key, begun if there is none. Throws what the read throws. */
    async join(person: string, key: string, read: (signal: AbortSignal) => Promise<T>): Promise<Joined<T>> {
      const name = nameOf(person, key);
      const entry = entries.get(name) ?? begin(person, name, read);
      entry.askedMs = clock.monotonicMs();
      const ended = new AbortController();
      const done = entry.value.then(
        (value): Joined<T> => ({ state: 'done', value }),
        (error) => {
          drop(name, entry);
          throw error;
        },
      );
      const tired = clock.wait(patienceMs, ended.signal).then(() => null);
      const first = await Promise.race([done, tired]).finally(() => ended.abort());
      if (first !== null) {
        drop(name, entry);
        return first;
      }
      done.catch(() => {});
      void leaveUnasked(name, entry);
      return { state: 'running', seconds: Math.round((clock.monotonicMs() - entry.begunMs) / 1000) };
    },
    /** Leaves the read, if there is one. */
    leave(person: string, key: string) {
      const name = nameOf(person, key);
      const entry = entries.get(name);
      if (entry) drop(name, entry);
    },
  };
}
