/**
 * `svc-sensor check --remove`: takes the counting program and the filter off the interfaces of the settings, or where none is set off every one of
 * this network namespace; for root.
 */
import { readSensorConfig } from '#sensor/config.ts';
import { loadFilter, loadKernel } from '#sensor/kernel/index.ts';

/** Prints what was removed. Resolves with the exit code. */
export async function removeCounters(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const { captures } = readSensorConfig(environment);
  const names = captures.flatMap(({ source }) => (source.kind === 'live' ? [source.interfaceName] : []));
  const which = names.length > 0 ? names : null;
  const say = (program: string, removed: readonly string[]) =>
    process.stdout.write(`The ${program} was taken off ${removed.join(', ') || 'no interface'}.\n`);
  // In this order: the place of the pins goes with the last counters.
  say('filter', (await loadFilter()).removeFilters(which));
  say('counting program', (await loadKernel()).removeCounters(which));
  return 0;
}
