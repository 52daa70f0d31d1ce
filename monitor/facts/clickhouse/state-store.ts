/** How ClickHouse stands, for the health page. */
import { describeError } from '#common/errors/index.ts';
import type { FactEngineState } from '../contract/engine-state.ts';
import type { Engine } from './engine-store.ts';
import { ch } from './statement.ts';

/** A health page waits no longer for it. */
const limitMs = 2_000;
/** ClickHouse slows inserts down at 1,000 parts of a partition and refuses them at 3,000. */
const partsMax = 500;
/** A tenth of the disk, which merges need as room. */
const freeShareMin = 0.1;

export async function readEngineState(engine: Engine): Promise<FactEngineState> {
  const begunMs = performance.now();
  try {
    const [parts] = await engine.rows<{ parts: number; most: number; rows: number; bytes: number }>(
      ch`select toFloat64(sum(several)) as parts, toFloat64(max(several)) as most, toFloat64(sum(all_rows)) as rows,
          toFloat64(sum(all_bytes)) as bytes
        from (select count() as several, sum(rows) as all_rows, sum(bytes_on_disk) as all_bytes from system.parts
          where active and database = currentDatabase() group by table, partition)`,
      limitMs,
    );
    const answerMs = performance.now() - begunMs;
    const [disk] = await engine.rows<{ free: number; total: number }>(
      ch`select toFloat64(min(free_space)) as free, toFloat64(min(total_space)) as total from system.disks where total_space > 0`,
      limitMs,
    );
    const { most, ...counted } = parts!;
    const free = disk?.free ?? null;
    const isFull = disk !== undefined && disk.total > 0 && disk.free < disk.total * freeShareMin;
    const problem =
      most > partsMax
        ? `ClickHouse merges facts too slowly: a table has ${most} parts of one day.`
        : isFull
          ? 'The disk of ClickHouse is nearly full.'
          : null;
    return { name: 'ClickHouse', problem, answerMs, ...counted, freeBytes: free };
  } catch (error) {
    const problem = `Traffic facts can't be read: ${describeError(error)}`;
    return {
      name: 'ClickHouse',
      problem,
      answerMs: null,
      parts: null,
      rows: null,
      bytes: null,
      freeBytes: null,
    };
  }
}
