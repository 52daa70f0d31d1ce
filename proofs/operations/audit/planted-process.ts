/** The process of the proof: judges the routes of operations without each call that writes to the audit trail. */
import { runPlanted } from '#service-kit/audit/testing/run-planted.ts';

await runPlanted('operations', async () => ({
  ...(await import('./stage.ts')),
  ...(await import('./judge.ts')),
}));
