/** The process of the proof: judges the routes of the monitor without each call that writes to the audit trail. */
import { runPlanted } from '#service-kit/audit/testing/run-planted.ts';

await runPlanted('monitor', async () => ({
  ...(await import('./cases.ts')),
  ...(await import('./judge.ts')),
}));
