/** A minute feed on a database and a stub of operations, for tests of its deliveries. */
import type { TelemetryPoint } from '#contracts/admin-api/schemas.ts';
import { addSensor, minutesAgo, renewRunningMinute } from '#monitor/testing/facts.ts';
import { createWorld, type World } from '#monitor/testing/world.ts';
import type { Feeds, RunningFeed, TickResult } from '../index.ts';

/** The minute feed, and what all feeds share. */
export type MinuteFeed = Feeds & RunningFeed;

export async function createFeedWorld(): Promise<{ world: World; sensor: number }> {
  const world = await createWorld();
  return { world, sensor: await addSensor(world) };
}

/** Forgets targets, cursors and facts, has operations accept everything, and makes a feed. */
export async function resetFeed(world: World): Promise<MinuteFeed> {
  renewRunningMinute();
  world.operations.posted.length = 0;
  world.operations.targets = [];
  world.operations.receipt = () => 'accepted';
  world.operations.intercept = () => false;
  await world.database.pool.query(
    'truncate feed_cursors, feed_set_aside, allocation_targets, feed_states, leases',
  );
  await world.database.pool.query('truncate host_minutes, application_facts, capture_minutes');
  return world.createFeed();
}

let nextId = 1;

/** An allocation that was assigned two days ago unless told otherwise. */
export function target(address: string, fields: { clusterId?: number; assignedAt?: string } = {}) {
  nextId += 1;
  return {
    id: nextId,
    billing_account_id: 1,
    virtual_machine_id: nextId,
    cluster_id: fields.clusterId ?? 7,
    address,
    assigned_at: fields.assignedAt ?? new Date(minutesAgo(60 * 48) * 1000).toISOString(),
  };
}

export async function runTick(feed: Pick<RunningFeed, 'runOnce'>): Promise<TickResult> {
  const result = await feed.runOnce();
  if (typeof result === 'string') throw new Error(`no tick: ${result}`);
  return result;
}

/** Points of a request that operations got. */
export const seriesOf = (world: World, index: number): TelemetryPoint[] =>
  world.operations.posted[index]!.targets[0]!.series;

/** Seconds since 1970. */
export const startOf = (point: { timestamp: string }) => Date.parse(point.timestamp) / 1000;
