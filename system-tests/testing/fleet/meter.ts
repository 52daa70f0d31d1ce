/** What the monitor's two programs use: processor time, memory, connections, disk, write-ahead log. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { BenchDatabase } from '#monitor/facts/testing/bench-monitor.ts';
import { familySeconds, processorSeconds } from '#monitor/facts/testing/processor-time.ts';
import { keptFacts } from '#monitor/retention/index.ts';

/** Seconds. */
export interface Used {
  serve: number;
  postgres: number;
  elapsed: number;
}

/** Measures work; what the idle programs take in the same time (`idle`: of one second) is taken off. */
export async function measure(
  pids: { serve: number; postgres: number },
  idle: { serve: number; postgres: number },
  work: () => Promise<void>,
): Promise<Used> {
  const read = () => ({ serve: processorSeconds(pids.serve), postgres: familySeconds(pids.postgres) });
  const [before, begun] = [read(), performance.now()];
  await work();
  const elapsed = (performance.now() - begun) / 1000;
  const after = read();
  return {
    serve: Math.max(0, after.serve - before.serve - idle.serve * elapsed),
    postgres: Math.max(0, after.postgres - before.postgres - idle.postgres * elapsed),
    elapsed,
  };
}

const noUse: Used = { serve: 0, postgres: 0, elapsed: 0 };

export function addUsed(all: readonly Used[]): Used {
  return all.reduce(
    (sum, one) => ({
      serve: sum.serve + one.serve,
      postgres: sum.postgres + one.postgres,
      elapsed: sum.elapsed + one.elapsed,
    }),
    noUse,
  );
}

const fieldOf = (path: string, field: string) => {
  try {
    return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(path, 'utf8'))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
};

/** MiB. What processes of PostgreSQL share is counted once. */
export function readMemory(pids: { serve: number; postgres: number }): {
  serve: number;
  servePeak: number;
  postgres: number;
} {
  const isOfPostgres = (pid: number) => pid === pids.postgres || parentOf(pid) === pids.postgres;
  const family = readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && isOfPostgres(pid));
  return {
    serve: fieldOf(`/proc/${pids.serve}/status`, 'VmRSS'),
    servePeak: fieldOf(`/proc/${pids.serve}/status`, 'VmHWM'),
    postgres: family.reduce((sum, pid) => sum + fieldOf(`/proc/${pid}/smaps_rollup`, 'Pss'), 0),
  };
}

function parentOf(pid: number): number {
  return Math.round(fieldOf(`/proc/${pid}/status`, 'PPid') * 1024);
}

/** Open sockets of `serve`: those of sensors and those to PostgreSQL. */
export function countSockets(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith('socket:');
    } catch {
      return false;
    }
  }).length;
}

const uploaded = new Set(['capture_minutes', 'host_minutes', 'application_facts', 'endpoint_pairs']);

/** Bytes on disk with indexes, by what kind of rows they are and for how long those are kept. */
export interface DiskUse {
  table: string;
  kind: 'facts' | 'roll-ups';
  keptFor: string;
  bytes: number;
}

export async function readDisk({ database }: BenchDatabase): Promise<DiskUse[]> {
  const { rows } = await database.pool.query<{ name: string; bytes: number }>(
    `select name, (select coalesce(sum(pg_total_relation_size(relid)), pg_total_relation_size(name::regclass))
      from pg_partition_tree(name::regclass))::float8 as bytes from unnest($1::text[]) name`,
    [keptFacts.map(({ table }) => table)],
  );
  const bytes = new Map(rows.map((row) => [row.name, row.bytes]));
  return keptFacts.map(({ table, keptFor }) => ({
    table,
    kind: uploaded.has(table) ? 'facts' : 'roll-ups',
    keptFor,
    bytes: bytes.get(table) ?? 0,
  }));
}

/** Bytes of write-ahead log since the beginning. */
export async function readLog({ database }: BenchDatabase): Promise<number> {
  const { rows } = await database.pool.query<{ bytes: number }>(
    "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes",
  );
  return rows[0]!.bytes;
}
