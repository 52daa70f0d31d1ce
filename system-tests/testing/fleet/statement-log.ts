/** Which statements of PostgreSQL took the most time in a part of a benchmark. */
import pg from 'pg';
import type { BenchDatabase } from '#monitor/facts/testing/bench-monitor.ts';

/** Settings of a PostgreSQL whose statements are logged. */
export const preloadStatements = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track_planning': 'on',
};
const shown = 8;

export interface StatementLog {
  begin(): Promise<void>;
  show(part: string): Promise<void>;
  close(): Promise<void>;
}

export async function createStatementLog(
  bench: BenchDatabase,
  report: (line: string) => void,
): Promise<StatementLog> {
  const client = new pg.Client({ connectionString: bench.adminUrl });
  await client.connect();
  await client.query('create extension if not exists pg_stat_statements');
  return {
    begin: async () => void (await client.query('select pg_stat_statements_reset()')),
    async show(part) {
      const { rows } = await client.query<{ line: string }>(
        `select round(total_exec_time + total_plan_time) || ' ms ' || calls || ' calls ' || rows || ' rows ' ||
           left(regexp_replace(query, '\\s+', ' ', 'g'), 150) as line
         from pg_stat_statements order by total_exec_time + total_plan_time desc limit ${shown}`,
      );
      report(`${part}:`);
      for (const { line } of rows) report(`  ${line}`);
    },
    close: () => client.end(),
  };
}
