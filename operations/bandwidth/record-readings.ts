import { describeError } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { Clusters } from '#operations/clusters/index.ts';
import {
  groupByDriver,
  type Hypervisors,
  type ObservedGuest,
  serverIdOfGuest,
} from '#operations/hypervisors/index.ts';
import {
  createLeasedLoop,
  ifHeld,
  type Lease,
  type LeasedLoop,
  type LoopDeps,
} from '#service-kit/leases/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { compareReadings, type Reading, splitByDay } from './reading.ts';
import * as store from './store.ts';

interface RecorderDeps extends LoopDeps {
  clusters: Clusters;
  hypervisors: Hypervisors;
}

/** Reads every node once a minute, on one of the replicas. */
export function createReadingLoop(deps: RecorderDeps): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.bandwidth_readings',
    intervalMs: 60_000,
    ttlSeconds: 180,
    ...deps,
    async run(lease, renew) {
      await recordReadings(deps, lease, renew);
    },
  });
}

async function recordReadings(deps: RecorderDeps, lease: Lease, renew: () => Promise<boolean>) {
  const nodes = await deps.clusters.listNodes(systemActor, null);
  for (const driver of groupByDriver(deps.hypervisors, nodes).keys()) {
    if (!(await renew())) return;
    try {
      const readings = readingsOf(await driver.observeGuests());
      await ifHeld(deps.db(), lease, (tx) => bookReadings(tx, readings));
    } catch (error) {
      deps.reporter.warn('bandwidth of a node could not be read', { error: describeError(error) });
    }
  }
}

/** Adds the usage of these totals, read at this moment. */
export async function bookReadings(tx: Queryable, readings: readonly Reading[]): Promise<void> {
  const nowMs = await readNowMs(tx);
  const byServer = new Map(readings.map((reading) => [reading.serverId, reading]));
  for (const server of await store.lockMeasured(tx, [...byServer.keys()])) {
    const reading = byServer.get(server.serverId)!;
    const { boot, ...use } = compareReadings(server.before, reading);
    const fromMs = server.before?.readAtMs ?? server.sinceMs;
    for (const day of splitByDay(fromMs, nowMs, use)) await store.addToDay(tx, server, day, nowMs);
    await store.putReading(tx, server.serverId, { ...reading, boot, readAtMs: nowMs });
  }
}

/** The sums over each guest's public network interfaces. Guests that count nothing are not measured, which is not the same as 0. */
export function readingsOf(guests: readonly ObservedGuest[]): Reading[] {
  return guests.flatMap((guest) => {
    const serverId = serverIdOfGuest(guest.name);
    const nics = guest.interfaces.filter((nic) => nic.isPublic);
    if (serverId === null || nics.length === 0) return [];
    return [
      {
        serverId,
        inboundTotal: nics.reduce((sum, nic) => sum + nic.receivedBytes, 0),
        outboundTotal: nics.reduce((sum, nic) => sum + nic.sentBytes, 0),
      },
    ];
  });
}
