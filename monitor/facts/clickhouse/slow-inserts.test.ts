/** Inserts that take longer than a silent transaction may. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { nameApplication } from '#monitor/applications/index.ts';
import { createMonitorWorld } from '#monitor/testing/index.ts';
import { until } from '#service-kit/testing/until.ts';
import { openScope } from '../index.ts';
import { randomMinutes, seededBelow } from '../testing/random-uploads.ts';
import { createClickhouseFacts } from './clickhouse-facts.ts';
import type { FactClient } from './engine-store.ts';
import { createChdbEngine } from './testing/chdb-engine.ts';

test('NET-7.1: while ClickHouse is slow, the transaction of the uploads says every five seconds that it is alive', async (t) => {
  await using world = await createMonitorWorld();
  await using engine = await createChdbEngine();
  const begun = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const slow = {
    query: engine.client.query.bind(engine.client),
    command: engine.client.command.bind(engine.client),
    close: async () => {},
    async exec(parameters: Parameters<FactClient['exec']>[0]) {
      begun.resolve();
      await release.promise;
      return await engine.client.exec(parameters);
    },
  } as FactClient;
  const { db } = world.database;
  const facts = createClickhouseFacts({ client: slow, db: () => db, nameApplication });
  await facts.migrate();
  t.mock.timers.enable({ apis: ['setInterval'] });
  const origins = [{ siteId: world.siteId, sensorId: world.sensor.id }];
  const minutes = [Math.floor(Date.now() / 60_000) * 60 - 600];
  const upload = randomMinutes(seededBelow(8), { origins, minutes });
  let session = 0;
  const applied = db.transaction().execute(async (trx) => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx);
    session = rows[0]!.pid;
    await facts.append([upload], openScope(trx));
  });
  await Promise.race([begun.promise, applied]);
  /** When the transaction's session last ended a statement. */
  const lastHeard = async () => {
    const [row] = await world.rows(
      `select extract(epoch from state_change)::text as at from pg_stat_activity where pid = ${session} and state = 'idle in transaction'`,
    );
    return (row as { at: string } | undefined)?.at;
  };
  try {
    for (let sign = 0; sign < 4; sign += 1) {
      const before = await lastHeard();
      t.mock.timers.tick(5_000);
      await until('the transaction says that it is alive', 60_000, async () => {
        const now = await lastHeard();
        return now !== undefined && now !== before;
      });
    }
  } finally {
    release.resolve();
    await applied;
  }
  assert.deepEqual([...(await facts.newestMinutes()).keys()], [world.siteId]);
});
