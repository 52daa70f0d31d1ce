/**
 * The date of worlds of tests: each begins at one moment in the middle of an hour, a day and a month, and goes on from there
 * as the machine's clock does. So nothing that a test says depends on when it runs, and no hour, day or month ends in it.
 */
import { type Clock, startOfMinuteMs, systemClock } from '#common/clock/index.ts';
import { moveDatabaseClock, presetDatabaseClock, type TestDatabase } from '#service-kit/testing/index.ts';

/** Five seconds after the start of a minute. */
export const worldStartMs = Date.UTC(2027, 5, 16, 10, 20, 5);
/** The start of the minute in which a world begins. */
export const worldMinuteMs = startOfMinuteMs(worldStartMs);

/** What the time of a world is ahead of the machine's, by the address of its database: of all that are open, the newest last. */
const offsets = new Map<string, number>();

/** The time of the world that was opened last. */
export const worldNowMs = (): number => Date.now() + ([...offsets.values()].at(-1) ?? 0);

/** Gives a database that nothing is connected to the date of a world; returns the clock of that world. */
export async function beginWorldTime(database: TestDatabase): Promise<Clock> {
  const offsetMs = offsets.get(database.url) ?? worldStartMs - Date.now();
  await presetDatabaseClock(database, `${offsetMs} milliseconds`);
  offsets.set(database.url, offsetMs);
  return { ...systemClock, nowMs: () => Date.now() + offsetMs };
}

/** A world at the machine's time: others of the process may still be open, with a date of theirs. */
export function beginMachineTime(database: TestDatabase): Clock {
  // A world on the database of an earlier one stays in its date.
  if (!offsets.has(database.url)) offsets.set(database.url, 0);
  return systemClock;
}

export function endWorldTime(database: TestDatabase): void {
  offsets.delete(database.url);
}

/** Moves the clock of a world's database ahead of its own time by an interval such as `2 hours`; `0` moves it back. */
export async function moveWorldClock(database: TestDatabase, interval: string): Promise<void> {
  // Months and years are added to the world's date: they are as long as they are there.
  const { rows } = await database.pool.query<{ ms: string }>(
    'select round(extract(epoch from now() + $1::interval + $2::interval - now()) * 1000)::text as ms',
    [`${offsets.get(database.url) ?? 0} milliseconds`, interval],
  );
  await moveDatabaseClock(database, `${rows[0]!.ms} milliseconds`);
}
