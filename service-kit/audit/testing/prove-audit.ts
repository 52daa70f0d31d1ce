/** The part of the proofs `audit` and `audit-monitor` that both share: runs the process, and says what it found. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { TakenOut } from './take-out-calls.ts';

/** `plantedProcess` is the module of the program's process. */
export function proveAudit(plantedProcess: URL, n: number, report: (line: string) => void) {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', fileURLToPath(plantedProcess), String(n)],
    { encoding: 'utf8', maxBuffer: 64 * 2 ** 20 },
  );
  const line = stdout.trim().split('\n').at(-1);
  if (!line) throw new Error(`the process ended with ${status}: ${stderr.slice(-2000)}`);
  const { calls, faults, routes } = JSON.parse(line) as TakenOut & { routes: number };
  for (const fault of faults) report(fault);
  for (const { name, noticedBy } of calls) report(`without ${name}: ${noticedBy ?? 'NOT NOTICED'}`);
  return {
    claim: `each of ${routes} routes that change something leaves its entry in the audit trail or stands in the list of exceptions`,
    tried: routes,
    failures: faults.length,
    plantedBugsCaught: `${calls.filter((call) => call.noticedBy !== null).length} of ${calls.length} calls`,
  };
}
