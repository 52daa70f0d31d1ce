/**
 * `./svc monitor sync_ops_ddos`: one tick of incidents and one of minutes with readable status, or only their loops (NET-4.5,
 * NET-4.6).
 */
import { runUntilSignal, startParts } from '#common/lifecycle/index.ts';
import { compose, partsOfFeed } from '../composition.ts';
import { readConfig } from '../config.ts';
import { type FeedState, incidents, minutes, type TickResult } from '../feeds/index.ts';

export async function syncTraffic(environment: NodeJS.ProcessEnv, isLoop: boolean): Promise<number> {
  const monitor = compose(readConfig(environment), { embedded: 'existing' });
  const { database, secrets, factEngine, feeds, reporter } = monitor;
  const [attacks, traffic] = [feeds.find(incidents.name), feeds.find(minutes.name)];
  if (isLoop) {
    const loops = [attacks, traffic].flatMap((feed) => partsOfFeed(monitor, feed));
    return runUntilSignal([database, secrets.part, factEngine.part, ...loops], reporter, () =>
      reporter.info('ready'),
    );
  }
  const stop = await startParts([database, secrets.part, factEngine.part], reporter);
  try {
    const delivered = await attacks.runOnce();
    process.stdout.write(
      `${describeIncidents(delivered)}\n${describeState(await attacks.state(), 'incident')}\n\n`,
    );
    const result = await traffic.runOnce();
    process.stdout.write(`${describeTick(result)}\n${describeState(await traffic.state())}\n`);
    const hasFailed = [delivered, result].some((one) => typeof one !== 'string' && one.error !== null);
    return hasFailed ? 1 : 0;
  } finally {
    await attacks.loop.stop();
    await traffic.loop.stop();
    await stop();
  }
}

const idleTexts = {
  held: 'Another process delivers already (serve, or the loop); this one did nothing.',
  idle: 'No connection to operations is enabled; nothing was sent.',
} as const;

/** The result of a tick of incidents, as text; its error is the last one of the feed's state. */
export function describeIncidents(result: TickResult | 'held' | 'idle'): string {
  if (typeof result === 'string') return `Incidents     ${idleTexts[result]}`;
  const { counts } = result;
  return [
    `Incidents     ${counts.due} changed or active, ${counts.visited} sent`,
    `Outcomes      ${counts.applied} applied, ${counts.unchanged} unchanged, ${counts.unmatched} unmatched, ${counts.identity_conflict} in conflict, ${counts.terminal} terminal`,
    `Failed        ${counts.failed}, ${counts.refused} that operations refused`,
  ].join('\n');
}

/** The same of a tick of minutes. */
export function describeTick(result: TickResult | 'held' | 'idle'): string {
  if (typeof result === 'string') return idleTexts[result];
  const { counts } = result;
  return [
    `Allocations   ${counts.targets} known, ${counts.unsupported} unsupported, ${counts.unmapped} in unmapped clusters`,
    `This tick     ${counts.visited} visited: ${counts.points} minutes sent, ${counts.empty} without data, ${counts.waiting} without a whole minute yet`,
    `Receipts      ${counts.accepted} accepted, ${counts.unchanged} unchanged, ${counts.unmatched} unmatched, ${counts.source_conflict} in conflict`,
    `Failed        ${counts.failed}, ${counts.refused} with minutes that operations refused`,
    `Set aside     ${counts.set_aside} minutes`,
  ].join('\n');
}

/** A feed's state, after the last run of any process (NET-2.9). */
export function describeState(state: FeedState | null, noun: 'minute' | 'bucket' | 'incident' = 'minute') {
  if (!state) return 'This feed has never run.';
  const time = (ms: number | null) => (ms === null ? 'never' : formatTime(ms));
  const newest = state.latestAcknowledged;
  return [
    `Last run      ${time(state.lastRunAtMs)}`,
    `Last receipt  ${time(state.lastReceiptAtMs)}`,
    `Newest ${noun} ${newest === null ? 'none acknowledged yet' : formatTime(newest * 1000)}`,
    `Last error    ${state.lastError ?? 'none'}`,
  ].join('\n');
}

function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
