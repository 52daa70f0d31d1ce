/**
 * `./svc monitor resolve_mac_vendors`: an offline pass over devices without a manufacturer, then a rate-limited pass at
 * the registry.
 */
import { startParts } from '#common/lifecycle/index.ts';
import { compose } from '../composition.ts';
import { readConfig } from '../config.ts';
import type { ResolveResult } from '../vendors/index.ts';

export async function resolveMacVendors(
  environment: NodeJS.ProcessEnv,
  options: { limit: number; isOffline: boolean },
): Promise<number> {
  const { database, devices, vendors, reporter } = compose(readConfig(environment), { embedded: 'existing' });
  const stop = await startParts([database], reporter);
  const interrupt = new AbortController();
  const onSignal = () => interrupt.abort();
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  const report = (line: string) => process.stdout.write(`${line}\n`);
  try {
    const result = await vendors.resolve(devices.backlog, { ...options, report, signal: interrupt.signal });
    report(
      result ? describeResult(result) : 'Another process is resolving vendors already; nothing was done.',
    );
    return result && result.failed > 0 && result.failed === result.lookups ? 1 : 0;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    await stop();
  }
}

function describeResult(result: ResolveResult): string {
  const { offline, lookups, named, unknown, failed, remaining, ended } = result;
  return [
    `Named offline    ${offline}`,
    `Lookups          ${lookups}: ${named} devices named, ${unknown} prefixes unknown, ${failed} failed`,
    `Still unnamed    ${remaining}`,
    ...(ended === null ? [] : [ended]),
  ].join('\n');
}
