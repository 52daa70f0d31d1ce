/**
 * `npm run prove -- audit-monitor`: every route of the monitor that changes data leaves an audit entry, and removing
 * any call that writes one is detected. `--n` limits the removed calls; 1000 is all of them.
 */
import { proveAudit } from '#service-kit/audit/testing/prove-audit.ts';

export const name = 'audit-monitor';

export async function prove({ n, report }: { n: number; seed: number; report: (line: string) => void }) {
  return proveAudit(new URL('./planted-process.ts', import.meta.url), n, report);
}
