/**
 * `svc-sensor attach`: attaches the counting program to the interfaces of the settings, and where the settings want it the filter to the
 * uplinks, before the sensor starts. It alone has the
 * capabilities for that, and ends.
 *
 * What is attached already goes on with its counters, by the program of this version.
 */
import { describeError } from '#common/errors/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { readSensorConfig } from '#sensor/config.ts';
import { loadFilter, loadKernel } from '#sensor/kernel/index.ts';

/** Resolves with the exit code: 1 where an interface has no program; its frames the sensor then counts one by one. */
export async function attach(environment: Readonly<Record<string, string | undefined>>): Promise<number> {
  const { captures, hasFilter, logFormat, logLevel } = readSensorConfig(environment);
  const reporter = createReporter({ program: 'sensor', format: logFormat, level: logLevel });
  let code = 0;
  for (const { name, role, source } of captures) {
    if (source.kind !== 'live') continue;
    try {
      (await loadKernel()).attachCounter(source.interfaceName);
    } catch (error) {
      reporter.warn('the kernel will not count, the sensor counts frame by frame', {
        capture: name,
        why: describeError(error),
      });
      code = 1;
    }
    if (role !== 'uplink') continue;
    try {
      const kernel = await loadFilter();
      if (hasFilter) kernel.attachFilter(source.interfaceName);
      else kernel.detachFilter(source.interfaceName);
    } catch (error) {
      if (!hasFilter) continue;
      reporter.warn('nothing can be dropped at this uplink', { capture: name, why: describeError(error) });
      code = 1;
    }
  }
  return code;
}

// `svc-sensor check --remove`: takes the counting program and the filter off the interfaces of the settings, or where none is set off every one of
// this network namespace; for root.

/** Prints what was removed. Resolves with the exit code. */
export async function removeCounters(environment: Readonly<Record<string, string | undefined>>) {
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
