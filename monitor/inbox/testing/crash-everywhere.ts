/** Crashes between the statements of applying uploads, on each engine of facts, and faults that they must show. */
import { randomUUID } from 'node:crypto';
import { nameApplication } from '#monitor/applications/index.ts';
import { createFactStore, type FactStore, openScope } from '#monitor/facts/index.ts';
import { createMemoryFacts } from '#monitor/facts/testing/memory/memory-facts.ts';
import { stopDatabaseClock } from '#monitor/testing/still-clock.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { applyWithCrash, type OpenFacts, startWholeProcess } from './crash-apply.ts';

/** A fault put into an engine; `db` is its process's. */
export type Plant = (facts: FactStore, db: () => Queryable) => FactStore;

export const engines: Readonly<Record<string, (plant: Plant) => OpenFacts>> = {
  PostgreSQL: (plant) => (db) => plant(createFactStore({ db, nameApplication }), db),
  /** It outlives the processes, and keeps what it took though the inbox's transaction is rolled back. */
  memory(plant) {
    const facts = createMemoryFacts({ nameApplication, nowSecond: () => Math.floor(Date.now() / 1000) });
    return (db) => plant(facts, db);
  },
};

export interface CrashedEverywhere {
  /** Of the first point that left something else; empty without one. */
  offences: string[];
  /** The statement after which the last crash was. */
  points: number;
  /** How many crashes. */
  crashes: number;
  /** What the site has without a crash. */
  outcome: string[];
}

/** Crashes after each statement from the note that a batch is begun to the commit that ends it; until an offence. */
export async function crashEverywhere(
  open: (plant: Plant) => OpenFacts,
  plant: Plant = (facts) => facts,
  /** Only after each statement of so many. */
  { every = 1 }: { every?: number } = {},
): Promise<CrashedEverywhere> {
  await using database = await createTestDatabase('monitor');
  await stopDatabaseClock(database, Date.now());
  await using uncrashed = startWholeProcess(
    database,
    open((facts) => facts),
  );
  const { outcome } = await applyWithCrash(database, uncrashed, Number.POSITIVE_INFINITY);
  await using whole = startWholeProcess(database, open(plant));
  for (let [points, crashes] = [1, 1]; ; points += every, crashes += 1) {
    const crashed = await applyWithCrash(database, whole, points);
    const lost = outcome.filter((line) => !crashed.outcome.includes(line));
    const added = crashed.outcome.filter((line) => !outcome.includes(line));
    const isSame = JSON.stringify(outcome) === JSON.stringify(crashed.outcome);
    const offences = isSame ? [] : [`crash after statement ${points}`, ...lost, '-- instead:', ...added];
    if (crashed.wasEnded || !isSame) return { offences, points, crashes, outcome };
  }
}

/** Loses an append: tokens are noted and never taken back, and their rows come after another statement. */
export const losing: () => Plant = () => {
  const noted = new Set<string>();
  return (facts, db) => ({
    ...facts,
    async append(uploads, scope) {
      const fresh = uploads.filter(({ token: { spoolId, sequence } }) => {
        const key = `${spoolId} ${sequence}`;
        return !noted.has(key) && noted.add(key);
      });
      await db().selectFrom('leases').select('name').execute();
      await facts.append(fresh, scope);
    },
  });
};

/** Marks the uploads before their rows are appended. */
export const marking: Plant = (facts, db) => {
  const waiting: Parameters<FactStore['append']>[0][number][] = [];
  return {
    ...facts,
    append: async (uploads) => void waiting.push(...uploads),
    async rollUp(hours, mayGoOn) {
      const late = waiting.splice(0);
      if (late.length > 0)
        await db()
          .transaction()
          .execute((trx) => facts.append(late, openScope(trx)));
      await facts.rollUp(hours, mayGoOn);
    },
  };
};

/** Counts a repeated append again. */
export const doubling: Plant = (facts) => ({
  ...facts,
  append: (uploads, scope) =>
    facts.append(
      uploads.map((upload) => ({ ...upload, token: { spoolId: randomUUID(), sequence: 1 } })),
      scope,
    ),
});
