/** The process of the proof: checks the monitor's routes with each audit call removed in turn. */
import { runPlanted } from '#service-kit/audit/testing/run-planted.ts';

await runPlanted('monitor', async () => ({
  ...(await import('./judge.ts')),
  ...(await import('./stage.ts')),
}));
