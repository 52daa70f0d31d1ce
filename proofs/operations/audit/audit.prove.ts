/**
 * `npm run prove -- audit`: every route of operations that changes something leaves its entry, and each call that writes
 * one is missed when it is taken out. `--n` bounds the calls that are taken out; 1000 is all of them.
 */
import { proveAudit } from '#service-kit/audit/testing/prove-audit.ts';

export const name = 'audit';

export async function prove({ n, report }: { n: number; seed: number; report: (line: string) => void }) {
  return proveAudit(new URL('./planted-process.ts', import.meta.url), n, report);
}
