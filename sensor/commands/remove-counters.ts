/**
 * `svc-sensor check --remove`: takes the counting program off the interfaces of the settings, or where none is set off every one of
 * this network namespace; for root.
 */
import { readSensorConfig } from '#sensor/config.ts';
import { loadKernel } from '#sensor/kernel/index.ts';

/** Prints what was removed. Resolves with the exit code. */
export async function removeCounters(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const { captures } = readSensorConfig(environment);
  const names = captures.flatMap(({ source }) => (source.kind === 'live' ? [source.interfaceName] : []));
  const removed = (await loadKernel()).removeCounters(names.length > 0 ? names : null);
  const text = removed.length === 0 ? 'no interface' : removed.join(', ');
  process.stdout.write(`The counting program was taken off ${text}.\n`);
  return 0;
}
