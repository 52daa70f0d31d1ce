/** `svc-sensor check --remove`: takes the counting program off every interface of this network namespace; for root. */
import { loadKernel } from '#sensor/kernel/index.ts';

/** Prints what was removed. Resolves with the exit code. */
export async function removeCounters(): Promise<number> {
  const removed = (await loadKernel()).removeCounters();
  const names = removed.length === 0 ? 'no interface' : removed.join(', ');
  process.stdout.write(`The counting program was taken off ${names}.\n`);
  return 0;
}
