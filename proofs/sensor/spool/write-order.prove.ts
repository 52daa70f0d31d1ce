/**
 * The order that stands for a loss of power: the log's sync has returned before a minute is called collected, before an
 * upload leaves and before a receipt is called stored; and the file's sync before the log is begun anew.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProofMonitor } from '../proof-monitor.ts';
import type { PlantedFault } from './planted-faults.ts';
import { traceCycle } from './traced-cycle.ts';
import { checkWriteOrder, type OrderResult } from './write-order.ts';

export const name = 'sensor-write-order';

const startMinute = 1_764_000_000;
const faults = ['synchronous_normal', 'announced_a_moment_early'] as const;

export async function prove({ n, report }: { n: number; seed: number; report: (line: string) => void }) {
  const sum = await traceOrder(n, null);
  for (const offence of sum.offences) report(offence);
  let caught = 0;
  for (const fault of faults) {
    const { offences } = await traceOrder(3, fault);
    report(`planted ${fault}: ${offences[0] ?? 'NOT NOTICED'}`);
    if (offences.length > 0) caught += 1;
  }
  return {
    claim: `the log's sync returns before any word of a minute, an upload or a receipt (${sum.words} words, ${sum.syncs} syncs, log begun anew ${sum.restarts} times)`,
    tried: n,
    failures: sum.offences.length,
    plantedBugsCaught: `${caught} of ${faults.length}`,
  };
}

/** Traces `n` cycles on one spool, the first of which makes it. */
export async function traceOrder(n: number, fault: PlantedFault | null): Promise<OrderResult> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-order-'));
  const monitor = await startProofMonitor(() => 1);
  const calls = ['pwrite64', 'fsync', 'fdatasync', 'ftruncate', 'write', 'writev', 'sendto'];
  const sum: OrderResult = { offences: [], syncs: 0, words: 0, restarts: 0 };
  try {
    for (let i = 0; i < n; i += 1) {
      const input = {
        directory: join(folder, 'state'),
        url: monitor.url,
        minute: startMinute + i * 60,
        patienceMs: 600_000,
        fault,
      };
      const { code, trace } = await traceCycle(input, { calls }, join(folder, 'order.trace'));
      const one = checkWriteOrder(trace);
      if (code !== 0) sum.offences.push(`a cycle ended with ${code}`);
      // Three words are the least a cycle says; fewer mean that this reader does not understand the trace.
      if (one.words < 3 || one.syncs < 2)
        sum.offences.push(`only ${one.words} words and ${one.syncs} syncs were seen`);
      sum.offences.push(...one.offences);
      sum.syncs += one.syncs;
      sum.words += one.words;
      sum.restarts += one.restarts;
    }
    return sum;
  } finally {
    monitor.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
