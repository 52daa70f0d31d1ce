/**
 * What the monitor takes in and how fast it answers, on two cores. `SVC_BENCH_PACED_MINUTES` and `SVC_BENCH_FACTS` make it
 * shorter or longer.
 */
import { benchIngest } from './testing/bench-ingest.ts';
import { benchReads } from './testing/bench-reads.ts';

export const name = 'monitor';

export async function run(report: (line: string) => void): Promise<void> {
  const part = process.env.SVC_BENCH_PART;
  if (part !== 'reads') await benchIngest(report);
  if (part !== 'ingest') await benchReads(report);
}
