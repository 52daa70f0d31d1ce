/**
 * WAN probes: what operators want reached, what sensors measured, and how available it was.
 *
 * A site has at most 32 probes; its sensors learn of them by their plan. A result counts once, however often it comes.
 * A minute is up when any sensor of the site got an answer in it, down when attempts were made and none was answered,
 * and unknown when no sensor measured: what is unknown is no part of any percentage.
 */
import type { PlanProbe } from '#contracts/sensor-api/http.ts';
import type { ProbeResult } from '#contracts/sensor-api/telemetry.ts';
import type { Actor } from '#monitor/operators/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as availability from './availability-store.ts';
import { addProbe, changeProbe, endProbe } from './manage-probe.ts';
import { listNewestMinutes, type ProbeMinutes } from './newest-store.ts';
import type { Probe, ProbeChange, ProbeInput } from './probe.ts';
import * as results from './results-store.ts';
import * as store from './store.ts';

export type { Availability, HistoryStep, SensorView } from './availability-store.ts';
export type { ProbeMinutes } from './newest-store.ts';
export {
  describeTarget,
  type Probe,
  type ProbeInput,
  type ProbeKind,
  probeKinds,
  probesMax,
} from './probe.ts';
export type { ProbeState } from './store.ts';

export interface Probes {
  /** Throws `probes.invalid` with what to change, and `probes.too_many`. */
  add(actor: Actor, siteId: number, input: ProbeInput): Promise<number>;
  /** Name, cadence, and whether it runs. False: the site has no such probe. */
  change(actor: Actor, siteId: number, probeId: number, change: ProbeChange): Promise<boolean>;
  /** No sensor measures it any more; its history stays until it expires. */
  remove(actor: Actor, siteId: number, probeId: number): Promise<boolean>;
  /** A site's probes by name, each with its newest minute. */
  list(siteId: number): Promise<store.ProbeState[]>;
  find(siteId: number, probeId: number): Promise<Probe | null>;
  /** What the plan of the site's sensors carries. */
  listPlanned(siteId: number): Promise<PlanProbe[]>;
  /** Makes room for results; outside their transaction. Gives those that lie within the kept time. */
  prepare(found: readonly ProbeResult[], nowMs: number): Promise<ProbeResult[]>;
  /** Stores results of a sensor; those of probes that its site does not have are left out. */
  addResults(
    trx: Queryable,
    origin: { siteId: number; sensorId: number },
    found: readonly ProbeResult[],
  ): Promise<void>;
  /** Each probe of the site over a range, and the site itself (`probeId` null). */
  readAvailability(siteId: number, fromMs: number, toMs: number): Promise<availability.Availability[]>;
  /** A probe in steps of whole minutes; steps in which nobody measured are missing. */
  readHistory(
    probeId: number,
    fromMs: number,
    toMs: number,
    stepSeconds: number,
  ): Promise<availability.HistoryStep[]>;
  /** The newest measured minutes of each probe of any site that runs, by the database's clock. */
  listNewestMinutes(count: number): Promise<ProbeMinutes[]>;
  /** How each sensor saw a probe in a range of at most a day. */
  listSensorViews(probeId: number, fromMs: number, toMs: number): Promise<availability.SensorView[]>;
}

export function createProbes(deps: { db: () => Queryable; reader: () => Queryable }): Probes {
  const { db } = deps;
  const prepare = results.createPartitionMaker();
  return {
    add: (actor, siteId, input) => addProbe(db(), actor, siteId, input),
    change: (actor, siteId, probeId, change) => changeProbe(db(), actor, siteId, probeId, change),
    remove: (actor, siteId, probeId) => endProbe(db(), actor, siteId, probeId),
    list: (siteId) => store.listProbes(db(), siteId),
    find: (siteId, probeId) => store.findProbe(db(), siteId, probeId),
    listPlanned: (siteId) => store.listPlanned(deps.reader(), siteId),
    prepare: (found, nowMs) => prepare(db(), found, nowMs),
    addResults: (trx, origin, found) => results.insertResults(trx, origin, found),
    readAvailability: (siteId, fromMs, toMs) => availability.readAvailability(db(), { siteId, fromMs, toMs }),
    readHistory: (probeId, fromMs, toMs, stepSeconds) =>
      availability.readHistory(db(), { probeId, fromMs, toMs, stepSeconds }),
    listNewestMinutes: (count) => listNewestMinutes(db(), count),
    listSensorViews: (probeId, fromMs, toMs) => availability.listSensorViews(db(), { probeId, fromMs, toMs }),
  };
}
