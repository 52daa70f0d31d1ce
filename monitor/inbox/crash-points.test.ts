import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import { createFactStore, type FactStore, openScope } from '#monitor/facts/index.ts';
import { createMemoryFacts } from '#monitor/facts/memory/memory-facts.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { applyWithCrash, type OpenFacts, startWholeProcess } from './testing/crash-apply.ts';

/** A fault put into an engine; `db` is its process's. */
type Plant = (facts: FactStore, db: () => Queryable) => FactStore;

const engines: Readonly<Record<string, (plant: Plant) => OpenFacts>> = {
  PostgreSQL: (plant) => (db) => plant(createFactStore({ db, nameApplication }), db),
  /** It outlives the processes, and keeps what it took though the inbox's transaction is rolled back. */
  memory(plant) {
    const facts = createMemoryFacts({ nameApplication, nowSecond: () => Math.floor(Date.now() / 1000) });
    return (db) => plant(facts, db);
  },
};

/** Crashes after every (or every third) statement from the note that a batch is begun to the commit that ends it; until an offence. */
async function crashEverywhere(
  open: (plant: Plant) => OpenFacts,
  plant: Plant,
  every = 1,
): Promise<{ offences: string[]; points: number; outcome: string[] }> {
  await using database = await createTestDatabase('monitor');
  await using uncrashed = startWholeProcess(
    database,
    open((facts) => facts),
  );
  const { outcome } = await applyWithCrash(database, uncrashed, Number.POSITIVE_INFINITY);
  await using whole = startWholeProcess(database, open(plant));
  for (let points = 1; ; points += every) {
    const crashed = await applyWithCrash(database, whole, points);
    const lost = outcome.filter((line) => !crashed.outcome.includes(line));
    const added = crashed.outcome.filter((line) => !outcome.includes(line));
    const isSame = JSON.stringify(outcome) === JSON.stringify(crashed.outcome);
    const offences = isSame ? [] : [`crash after statement ${points}`, ...lost, '-- instead:', ...added];
    if (crashed.wasEnded || !isSame) return { offences, points, outcome };
  }
}

const outcomes: string[][] = [];

for (const [name, open] of Object.entries(engines)) {
  test(`NET-7.1: a process that crashes between any two statements of applying uploads, and is repeated, leaves what one without a crash does; ${name}`, async () => {
    const { offences, points, outcome } = await crashEverywhere(open, (facts) => facts);
    assert.deepEqual(offences, []);
    assert.ok(points > 15, `${points} points`);
    outcomes.push(outcome);
    assert.deepEqual(outcome, outcomes[0], 'engines answer alike');
  });

  test(`the crash points show an append that is lost, and a mark before the append; ${name}`, async () => {
    const noted = new Set<string>();
    const losing: Plant = (facts, db) => ({
      ...facts,
      // Tokens are noted and never taken back, and their rows come after another statement.
      async append(uploads, scope) {
        const fresh = uploads.filter(({ token: { spoolId, sequence } }) => {
          const key = `${spoolId} ${sequence}`;
          return !noted.has(key) && noted.add(key);
        });
        await db().selectFrom('leases').select('name').execute();
        await facts.append(fresh, scope);
      },
    });
    const marking: Plant = (facts, db) => {
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
    assert.notDeepEqual((await crashEverywhere(open, losing)).offences, []);
    assert.notDeepEqual((await crashEverywhere(open, marking, 3)).offences, []);
  });
}

test('the crash points show an append that counts twice where facts are not in the transaction', async () => {
  const doubling: Plant = (facts) => ({
    ...facts,
    append: (uploads, scope) =>
      facts.append(
        uploads.map((upload) => ({ ...upload, token: { spoolId: randomUUID(), sequence: 1 } })),
        scope,
      ),
  });
  assert.notDeepEqual((await crashEverywhere(engines.memory!, doubling, 3)).offences, []);
});
