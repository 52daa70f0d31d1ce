/**
 * Looks at every node and brings servers' power states up to date: a guest that halted by itself, or was switched by an
 * operator at the node, is shown as it is. A server that is being acted upon is left to its action.
 */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { type Clusters, noteSeen } from '#operations/clusters/index.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import { serverIdOfGuest } from '#operations/hypervisors/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export interface ObserverDeps {
  db: () => Queryable;
  clusters: Clusters;
  hypervisors: Hypervisors;
  reporter: Reporter;
}

const powerStates = { on: 'running', off: 'stopped', unknown: 'unknown' } as const;

/** One look at every node; returns how many servers were not as we thought. */
export async function observePower(deps: ObserverDeps): Promise<number> {
  let changed = 0;
  for (const node of await deps.clusters.listNodes(systemActor, null)) {
    const since = new Date(await readNowMs(deps.db()));
    try {
      const guests = await deps.hypervisors.of(node).observeGuests();
      await noteSeen(deps.db(), node.id, null);
      const seen = guests.flatMap((guest) => {
        const serverId = serverIdOfGuest(guest.name);
        return serverId === null ? [] : [{ serverId, powerState: powerStates[guest.power] }];
      });
      changed += await store.applyObservation(deps.db(), node.id, since, seen);
    } catch (error) {
      const message = describeError(error);
      if (node.lastError === null)
        deps.reporter.warn('a node does not answer', { node: node.name, error: message });
      await noteSeen(deps.db(), node.id, message);
    }
  }
  return changed;
}

/** The loop that looks every 15 seconds, on one of the replicas. */
export function createPowerObserver(deps: ObserverDeps & { clock: Clock }): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.power_observer',
    intervalMs: 15_000,
    ttlSeconds: 60,
    ...deps,
    async run() {
      await observePower(deps);
    },
  });
}
