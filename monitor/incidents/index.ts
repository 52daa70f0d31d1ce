/**
 * Incidents: attacks, made of what sensors observe of them.
 *
 * A sensor speaks only for servers of its own node. A revision of an observation is applied once, and a lower one than held
 * changes nothing. Observations of one target and direction at one time are one incident with an id of our own, in any
 * order they come; the strongest capture counts. An incident ends only when its sensors have said that it is over: without
 * news for ninety seconds it is stale. Times are the sensors'.
 */

import { bind } from '#common/bind/index.ts';
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Events } from '#monitor/events/index.ts';
import { type ChangedAddress, share } from '#monitor/placements/index.ts';
import { createLeasedLoop, ifHeld, type LeasedLoop } from '#service-kit/leases/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { applyObservations, createIncidentConsumer, type SensorObservations } from './apply-observations.ts';
import { readAttackPeriods } from './attack-periods-store.ts';
import { staleMs } from './correlate.ts';
import type { Incident, Transition } from './incident.ts';
import * as read from './read-store.ts';
import { listDeliverable, noteDelivered } from './read-store.ts';
import { regroup, rejudgeAddresses } from './regroup.ts';
import * as store from './store.ts';

export { requireIncidentsAlone } from './apply-observations.ts';
export type { AttackPeriods, UnassignablePeriod } from './attack-periods-store.ts';
export {
  comparedRate,
  type Incident,
  type IncidentAction,
  isBitMetric,
  nameOfClass,
  type TransitionKind,
  titleOfIncident,
} from './incident.ts';
export {
  type CurvePoint,
  type DeliverableIncident,
  type OpenCounts,
  type RemotePrefix,
  type SensorView,
  type StoredIncident,
  type StoredTransition,
  setIncidentActions,
} from './read-store.ts';
export { lockSites as lockIncidents } from './store.ts';

export type Incidents = ReturnType<typeof createIncidents>;

/** On the page of an incident. */
const remotesShown = 50;

export function createIncidents(deps: IncidentsDeps) {
  const { db } = deps;
  const reader = deps.reader ?? db;
  async function apply(trx: Queryable, uploads: readonly SensorObservations[]): Promise<void> {
    const { counts } = await applyObservations(deps, trx, uploads);
    for (const name of ['applied', 'foreign', 'repeated'] as const) deps.tally?.(name, counts[name]);
  }
  return {
    /** Takes `incidents` of uploads. */
    consumer: createIncidentConsumer(apply),
    /** Judges again who speaks for these addresses, in the transaction that changed their placements. */
    rejudge: (trx: Queryable, changed: readonly ChangedAddress[]) => rejudgeAddresses(deps, trx, changed),
    /** Makes incidents without news stale; may run in any number of processes. */
    loop: createStaleLoop(deps),
    /** Operations has answered about these revisions; in the transaction that notes its receipts. */
    noteDelivered,
    ...bind(db, { listDeliverable, findObservation: read.findObservation }),
    ...bind(reader, {
      ...{ list: read.listIncidentsFor, find: read.findIncident, readCurve: read.readCurve },
      ...{ countOpen: read.countOpen, listForeign: read.listForeign, readAttackPeriods },
    }),
    /** Everything that belongs to an incident, for its page. */
    async readDetail(id: string) {
      const [views, transitions, remotes] = await Promise.all([
        read.listSensorViews(reader(), id),
        read.listTransitions(reader(), id),
        read.listRemotes(reader(), id, remotesShown),
      ]);
      return { views, transitions, remotes };
    },
  };
}

/** A change of an incident that can be seen. */
export interface IncidentChange {
  /** As it is now. */
  incident: Incident;
  /** Null: it is new. */
  before: Incident | null;
  transitions: readonly Transition[];
}

export interface IncidentsDeps {
  db: () => Queryable;
  /** Connections that only read; the same as the others when absent. */
  reader?: () => Queryable;
  events: Pick<Events, 'record'>;
  clock: Clock;
  reporter: Reporter;
  /** Counts what this process applied: `applied` revisions, those of them that are `foreign`, `repeated` ones. */
  tally?(outcome: 'applied' | 'foreign' | 'repeated', count: number): void;
  /** Called with changes in their transaction, such as for alerts. */
  onChange?(trx: Queryable, changes: readonly IncidentChange[]): Promise<void>;
}

/** Incidents whose last observation is older than ninety seconds become stale (NET-3.2). */
const intervalMs = 5_000;
const leaseSeconds = 30;
/** Incidents of one transaction. */
const batchMax = 256;

/** A loop for any number of processes. */
function createStaleLoop(deps: IncidentsDeps): LeasedLoop {
  return createLeasedLoop({
    name: 'incidents',
    intervalMs,
    ttlSeconds: leaseSeconds,
    ...{ db: deps.db, clock: deps.clock, reporter: deps.reporter },
    async run(lease, renew, signal) {
      for (let found = batchMax; found === batchMax && !signal.aborted; ) {
        const isHeld = await ifHeld(deps.db(), lease, async (trx) => {
          await share(trx);
          const fading = await store.listFading(trx, (await readNowMs(trx)) - staleMs, batchMax);
          found = fading.length;
          await store.lockSites(trx, [...new Set(fading.map(({ siteId }) => siteId))]);
          const ids = fading.map(({ id }) => id);
          if (found > 0) await regroup(deps, trx, await store.listRowsOfIncidents(trx, ids), ids);
          return true;
        });
        if (!isHeld || (found === batchMax && !(await renew()))) return;
      }
    },
  });
}
