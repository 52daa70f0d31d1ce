/** The plans of the statements that one query of the explorer runs. */
import { Kysely, type LogEvent, PostgresDialect } from 'kysely';
import { nameApplication } from '#monitor/applications/index.ts';
import { createFactStore } from '#monitor/facts/index.ts';
import type { BenchDatabase } from '#monitor/facts/testing/bench-monitor.ts';
import { withCamelNames } from '#service-kit/postgres/database.ts';
import { createExplorer, parseQueryUrl } from '../index.ts';

const linesMax = 400;
/** Plans are asked for where statements are slow. */
const answerMs = 100_000;

export async function showPlans(
  { database, monitor }: BenchDatabase,
  siteId: number,
  query: string,
  report: (line: string) => void,
): Promise<void> {
  const statements: { sql: string; parameters: readonly unknown[] }[] = [];
  const db = new Kysely({
    dialect: new PostgresDialect({ pool: withCamelNames(database.pool) }),
    log: ({ query: { sql, parameters } }: LogEvent) => void statements.push({ sql, parameters }),
  });
  const facts = createFactStore({ db: () => db, nameApplication, exploreMs: answerMs });
  const explorer = createExplorer({
    db: () => db,
    facts,
    devices: monitor.devices,
    describeNetworks: monitor.peers.describe,
  });
  await explorer.explore(parseQueryUrl(siteId, Object.fromEntries(new URLSearchParams(query))).query);
  const client = await database.pool.connect();
  try {
    await client.query('begin');
    for (const { sql, parameters } of statements) {
      // Settings of the reading transaction hold for the plans as well.
      if (/set_config/.test(sql)) await client.query(sql, [...parameters]);
      if (!/^\s*with/i.test(sql)) continue;
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(
        `explain (analyze, buffers, costs off, timing on, summary on) ${sql}`,
        [...parameters],
      );
      const lines = rows.map((row) => row['QUERY PLAN']);
      report(`plan of a statement of ${query || 'the default view'}`);
      for (const line of lines.slice(0, linesMax)) report(`  ${line}`);
      if (lines.length > linesMax) report(`  … ${lines.length - linesMax} lines more; ${lines.at(-1)}`);
    }
  } finally {
    await client.query('rollback');
    client.release();
  }
}
