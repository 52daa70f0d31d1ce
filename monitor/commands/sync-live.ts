/** `./svc monitor sync_ops_protect_live`: one live tick with readable status, or only the loop (NET-4.5, NET-4.6). */
import { runUntilSignal, startParts } from '#common/lifecycle/index.ts';
import { compose } from '../composition.ts';
import { readConfig } from '../config.ts';
import { live, type TickResult } from '../feeds/index.ts';
import { describeState } from './sync-traffic.ts';

export async function syncLive(environment: NodeJS.ProcessEnv, isLoop: boolean): Promise<number> {
  const monitor = compose(readConfig(environment), { embedded: 'existing' });
  const { database, secrets, feeds, reporter } = monitor;
  const { loop, runOnce, state } = feeds.find(live.name);
  // Windows may be in a store of their own.
  const parts = [database, secrets.part, monitor.live.part];
  if (isLoop) return runUntilSignal([...parts, loop], reporter, () => reporter.info('ready'));
  const stop = await startParts(parts, reporter);
  try {
    const result = await runOnce();
    process.stdout.write(`${describeTick(result)}\n${describeState(await state(), 'bucket')}\n`);
    return typeof result !== 'string' && result.error !== null ? 1 : 0;
  } finally {
    await loop.stop();
    await stop();
  }
}

function describeTick(result: TickResult | 'held' | 'idle'): string {
  if (result === 'held')
    return 'Another process delivers already (serve, or the loop); this one did nothing.';
  if (result === 'idle') return 'No connection to operations is enabled; nothing was sent.';
  const { counts } = result;
  return [
    `Allocations   ${counts.targets} known, ${counts.unsupported} unsupported, ${counts.unmapped} in unmapped clusters`,
    `This tick     ${counts.visited} visited: ${counts.points} ten-second buckets sent, ${counts.empty} allocations without data`,
    `Receipts      ${counts.accepted} accepted, ${counts.unchanged} unchanged, ${counts.unmatched} unmatched, ${counts.source_conflict} in conflict`,
    `Failed        ${counts.failed}`,
    `Reads         ${counts.source_limited} reached a limit of the live source`,
  ].join('\n');
}
