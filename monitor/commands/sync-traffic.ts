/** `./svc monitor sync_ops_ddos`: one delivery tick with readable status, or only the loop (NET-4.5, NET-4.6). */
import { runUntilSignal, startParts } from '#common/lifecycle/index.ts';
import { compose } from '../composition.ts';
import { readConfig } from '../config.ts';
import { type FeedState, minutes, type TickResult } from '../feeds/index.ts';

export async function syncTraffic(environment: NodeJS.ProcessEnv, isLoop: boolean): Promise<number> {
  const { database, secrets, feeds, reporter } = compose(readConfig(environment), {
    mayJoin: true,
  });
  const { loop, runOnce, state } = feeds.find(minutes.name);
  if (isLoop) return runUntilSignal([database, secrets.part, loop], reporter, () => reporter.info('ready'));
  const stop = await startParts([database, secrets.part], reporter);
  try {
    const result = await runOnce();
    process.stdout.write(`${describeTick(result)}\n${describeState(await state())}\n`);
    return typeof result !== 'string' && result.error !== null ? 1 : 0;
  } finally {
    await loop.stop();
    await stop();
  }
}

/** The result of a tick, as text. */
export function describeTick(result: TickResult | 'held' | 'idle'): string {
  if (result === 'held')
    return 'Another process delivers already (serve, or the loop); this one did nothing.';
  if (result === 'idle') return 'No connection to operations is enabled; nothing was sent.';
  const { counts, error } = result;
  const lines = [
    `Allocations   ${counts.targets} known, ${counts.unsupported} unsupported, ${counts.unmapped} in unmapped clusters`,
    `This tick     ${counts.visited} visited: ${counts.points} minutes sent, ${counts.empty} without data, ${counts.waiting} without a whole minute yet`,
    `Receipts      ${counts.accepted} accepted, ${counts.unchanged} unchanged, ${counts.unmatched} unmatched, ${counts.source_conflict} in conflict`,
    `Failed        ${counts.failed}, ${counts.refused} with minutes that operations refused`,
    `Set aside     ${counts.set_aside} minutes`,
  ];
  if (error !== null) lines.push(`Error         ${error}`);
  return lines.join('\n');
}

/** The feed's state, after the last run of any process (NET-2.9). */
export function describeState(state: FeedState | null): string {
  if (!state) return 'This feed has never run.';
  const time = (ms: number | null) => (ms === null ? 'never' : formatTime(ms));
  const minute = state.latestAcknowledged;
  return [
    `Last run      ${time(state.lastRunAtMs)}`,
    `Last receipt  ${time(state.lastReceiptAtMs)}`,
    `Newest minute ${minute === null ? 'none acknowledged yet' : formatTime(minute * 1000)}`,
    `Last error    ${state.lastError ?? 'none'}`,
  ].join('\n');
}

function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
