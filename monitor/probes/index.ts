/**
 * WAN probes: external targets, their results from sensors, and their availability.
 *
 * A site has at most 32 probes; its sensors receive them in their plan. A result counts once, even if it arrives
 * repeatedly. A minute is up when any sensor of the site got an answer, down when all attempts failed, and unknown when
 * no sensor measured. Unknown minutes are not part of percentages.
 */
import type { UploadConsumer } from '#monitor/intake/index.ts';
import type { Actor } from '#monitor/operators/index.ts';
import type { PlanSection } from '#monitor/sensors/index.ts';
import { listSensorViews, type SensorView } from '#monitor/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as availability from './availability-store.ts';
import { listNewestMinutes, type ProbeMinutes } from './availability-store.ts';
import { createProbeConsumer, type SensorResults } from './consume-probes.ts';
import { addProbe, changeProbe, endProbe } from './manage-probe.ts';
import type { Probe, ProbeChange, ProbeInput } from './probe.ts';
import { createProbesSection } from './probes-section.ts';
import * as store from './store.ts';

export type { Availability, HistoryStep, ProbeMinutes } from './availability-store.ts';
export {
  describeTarget,
  type Probe,
  type ProbeInput,
  type ProbeKind,
  probeKinds,
  probesMax,
} from './probe.ts';
export type { ProbeState } from './store.ts';
export type { SensorView };

export interface Probes {
  /** Throws `probes.invalid` with the correction, and `probes.too_many`. */
  add(actor: Actor, siteId: number, input: ProbeInput): Promise<number>;
  /** Changes name, interval, timeout and state. Returns false when the site has no such probe. */
  change(actor: Actor, siteId: number, probeId: number, change: ProbeChange): Promise<boolean>;
  /** Sensors stop measuring it; its history stays until it expires. */
  remove(actor: Actor, siteId: number, probeId: number): Promise<boolean>;
  /** A site's probes by name, each with its newest minute. */
  list(siteId: number): Promise<store.ProbeState[]>;
  find(siteId: number, probeId: number): Promise<Probe | null>;
  /** The section of the sensors' plans. */
  readonly section: PlanSection;
  /** Consumes `probes` of uploads; results of unknown probes of the sensor's site are left out. */
  readonly consumer: UploadConsumer<SensorResults>;
  /** Each probe of the site over a range, and the site itself (`probeId` null). */
  readAvailability(siteId: number, fromMs: number, toMs: number): Promise<availability.Availability[]>;
  /** A probe in steps of whole minutes; unmeasured steps are missing. */
  readHistory(
    probeId: number,
    fromMs: number,
    toMs: number,
    stepSeconds: number,
  ): Promise<availability.HistoryStep[]>;
  /** The newest measured minutes of every active probe of any site, by the database's clock. */
  listNewestMinutes(count: number): Promise<ProbeMinutes[]>;
  /** Results of each sensor for a probe, in a range of at most a day. */
  listSensorViews(probeId: number, fromMs: number, toMs: number): Promise<SensorView[]>;
}

export function createProbes(deps: { db: () => Queryable; reader: () => Queryable }): Probes {
  const { db } = deps;
  return {
    add: (actor, siteId, input) => addProbe(db(), actor, siteId, input),
    change: (actor, siteId, probeId, change) => changeProbe(db(), actor, siteId, probeId, change),
    remove: (actor, siteId, probeId) => endProbe(db(), actor, siteId, probeId),
    list: (siteId) => store.listProbes(db(), siteId),
    find: (siteId, probeId) => store.findProbe(db(), siteId, probeId),
    section: createProbesSection(deps),
    consumer: createProbeConsumer(db),
    readAvailability: (siteId, fromMs, toMs) => availability.readAvailability(db(), { siteId, fromMs, toMs }),
    readHistory: (probeId, fromMs, toMs, stepSeconds) =>
      availability.readHistory(db(), { probeId, fromMs, toMs, stepSeconds }),
    listNewestMinutes: (count) => listNewestMinutes(db(), count),
    listSensorViews: (probeId, fromMs, toMs) => listSensorViews(db(), { probeId, fromMs, toMs }),
  };
}
