/** `./svc monitor refresh_vulnerabilities`: one pass, the loop, or an import of feed files (NET-2.6.4). */
import { CodedError } from '#common/errors/index.ts';
import { runUntilSignal, startParts } from '#common/lifecycle/index.ts';
import { compose } from '../composition.ts';
import { readConfig } from '../config.ts';
import type { CopiedProduct } from '../vulnerabilities/index.ts';

export interface RefreshOptions {
  isLoop: boolean;
  /** A folder with feed files and files of trackers, or a URL of one; null asks the database. */
  folder: string | null;
}

export async function refreshVulnerabilities(
  environment: NodeJS.ProcessEnv,
  { isLoop, folder }: RefreshOptions,
): Promise<number> {
  if (isLoop && folder !== null) throw new CodedError('command.invalid', 'Use --loop or --from, not both.');
  const { database, vulnerabilities, reporter, clock } = compose(readConfig(environment), {
    embedded: 'existing',
  });
  if (isLoop)
    return runUntilSignal([database, ...vulnerabilities.parts], reporter, () => reporter.info('ready'));
  const stop = await startParts([database], reporter);
  const interrupt = new AbortController();
  const onSignal = () => interrupt.abort();
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  const report = (line: string) => process.stdout.write(`${line}\n`);
  try {
    const result =
      folder === null
        ? await vulnerabilities.refresh(report, interrupt.signal)
        : await vulnerabilities.importFiles(folder, report);
    const products = await vulnerabilities.listProducts();
    for (const product of products) report(describeProduct(product, clock.nowMs()));
    for (const { distribution, fixes, importedAtMs } of await vulnerabilities.listTrackers())
      report(
        `Tracker of ${distribution.padEnd(9)} ${fixes} statements, ${describeAge(clock.nowMs() - importedAtMs)} old`,
      );
    const assessed = await vulnerabilities.assessor.runOnce();
    if (assessed !== null)
      report(`Assessed again: ${assessed.servers} ${assessed.servers === 1 ? 'server' : 'servers'}.`);
    if (result === 'held')
      report('Another process refreshes the records (serve, or the loop); this one did nothing.');
    if (result === 'held' || !('error' in result) || result.error === null) return 0;
    if (!products.some(({ error }) => error === result.error)) report(result.error);
    return 1;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    await stop();
  }
}

function describeProduct(product: CopiedProduct, nowMs: number): string {
  const { title, records, refreshedAtMs, unreadable, deferred, error } = product;
  const age = refreshedAtMs === null ? 'never fetched' : `${describeAge(nowMs - refreshedAtMs)} old`;
  const details = [
    `${records} records`,
    age,
    ...(deferred > 0 ? [`${deferred} deferred`] : []),
    ...(unreadable > 0 ? [`${unreadable} unreadable`] : []),
    ...(error === null ? [] : [`last attempt failed: ${error}`]),
  ];
  return `${title.padEnd(20)} ${details.join(', ')}`;
}

function describeAge(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / 60_000));
  return minutes < 120
    ? `${minutes} min`
    : minutes < 2_880
      ? `${Math.floor(minutes / 60)} h`
      : `${Math.floor(minutes / 1_440)} days`;
}
