/** A monitor with one sensor, two servers and an operations that requests scans, for tests of the feed of port scans. */
import assert from 'node:assert/strict';
import { Value } from 'typebox/value';
import { PortScansRequest, type ScanRequest, ScanRequestUpdates } from '#contracts/admin-api/port-scans.ts';
import type { ScanReport } from '#contracts/sensor-api/port-scans.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { listInterfaces, listServers, secondsAgo } from '#monitor/scans/testing/scan-world.ts';
import { createWorld } from '#monitor/testing/world.ts';
import type { RunningFeed, TickResult } from '../index.ts';

/** Of server 1, whose allocation is 4. */
export const address = '203.0.113.10';
export const assignedAt = secondsAgo(86_400);

export const targetOf = (id: number, serverId: number, of: string, at = assignedAt) => ({
  ...{ id, billing_account_id: 1, virtual_machine_id: serverId, cluster_id: 7, address: of, assigned_at: at },
});

/** A request of operations for server 1. */
export function requestOf(id: string, change: Partial<ScanRequest> = {}): ScanRequest {
  return {
    ...{ id, billing_account_id: 1, virtual_machine_id: 1, cluster_id: 7, allocation_id: 4, address },
    ...{ assigned_at: assignedAt, kind: 'manual', profile: 'full', revision: 1 },
    ...{ requested_at: secondsAgo(5), expires_at: secondsAgo(-86_395), ...change },
  };
}

export type PortScanStage = Awaited<ReturnType<typeof createPortScanStage>>;

export async function createPortScanStage() {
  const world = await createWorld();
  const { pool } = world.database;
  const { token } = await world.sensors.createToken(systemActor, world.siteId);
  const names = { host_name: 'host-1', node: 'hv-1', sensor_version: '0.1.24' };
  const { sensor_id } = (await world.sensors.enrol({ token, ...names }))!;
  const sensor = { id: sensor_id, siteId: world.siteId };
  await pool.query(
    `insert into captures (site_id, sensor_id, name, role) values ($1, $2, 'uplink0', 'uplink'), ($1, $2, 'br0', 'bridge')`,
    [world.siteId, sensor.id],
  );
  await listInterfaces(pool, sensor.id);
  await listServers(pool, [
    { serverId: 1, addresses: [address] },
    { serverId: 2, addresses: ['203.0.113.11'] },
  ]);
  let feed: RunningFeed | null = null;
  const plan = () => world.scans.readPlan(sensor);
  /** The feed as a process has it that has just started, after the one before has ended. */
  const startFeed = async () => {
    await feed?.loop.stop();
    feed = world.createFeed().find('port-scans');
  };
  return {
    ...{ world, sensor, plan, startFeed },
    get feed() {
      return feed!;
    },
    /** Before each test: operations takes everything and requests nothing, the monitor has no scans, the feed has just started. */
    async reset(): Promise<void> {
      const { operations } = world;
      operations.postedUpdates.length = 0;
      operations.postedScans.length = 0;
      operations.scanRequests = [];
      operations.updateOutcome = () => 'accepted';
      operations.scanReceipt = () => 'accepted';
      operations.intercept = () => false;
      operations.targets = [targetOf(4, 1, address)];
      await pool.query(
        'truncate scan_requests, scan_attempts, scan_observations, scan_identifications, feed_cursors, feed_states, leases, allocation_targets cascade',
      );
      await startFeed();
    },
    async tick(): Promise<TickResult> {
      const ticked = await feed!.runOnce();
      if (typeof ticked === 'string') throw new Error(`no tick: ${ticked}`);
      return ticked;
    },
    /** Ids of the requests in the sensor's plan. */
    planned: async () => (await plan()).requests.map((one) => one.scan_request_id),
    targetId: async (of = address) => (await plan()).targets.find((one) => one.address === of)!.target_id,
    /** The receipt of what the sensor reports. */
    report: async (body: ScanReport) => (await world.scans.receive(sensor, body)).receipt,
    /** What operations was told of requests. */
    told: () =>
      world.operations.postedUpdates.flatMap((body) => {
        assert.ok(Value.Check(ScanRequestUpdates, body));
        return body.updates.map(({ id, state }) => `${id.slice(-2)} ${state}`);
      }),
    /** Results that operations was sent. */
    sent: () =>
      world.operations.postedScans.flatMap((body) => {
        assert.ok(
          Value.Check(PortScansRequest, body),
          JSON.stringify([...Value.Errors(PortScansRequest, body)]),
        );
        return body.results;
      }),
    async [Symbol.asyncDispose]() {
      await feed?.loop.stop();
      await world[Symbol.asyncDispose]();
    },
  };
}
