/**
 * WAN probes: external targets, their results from sensors, and their availability.
 *
 * A site has at most 32 probes; its sensors receive them in their plan. A result counts once, even if it arrives
 * repeatedly. A minute is up when any sensor of the site got an answer, down when all attempts failed, and unknown when
 * no sensor measured. Unknown minutes are not part of percentages.
 */

import type { PlanProbe } from '#contracts/sensor-api/http.ts';
import type { Actor } from '#monitor/operators/index.ts';
import { listSection, type PlanSection } from '#monitor/sensors/index.ts';
import { listSensorViews } from '#monitor/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as availability from './availability-store.ts';
import { listNewestMinutes } from './availability-store.ts';
import { createProbeConsumer } from './consume-probes.ts';
import { addProbe, changeProbe, endProbe } from './manage-probe.ts';
import { type ProbeChange, type ProbeInput, probesMax } from './probe.ts';
import * as store from './store.ts';

export type { Availability, HistoryStep, ProbeMinutes } from './availability-store.ts';
export { describeTarget, type Probe, type ProbeInput, probeKinds, probesMax } from './probe.ts';
export type { ProbeState } from './store.ts';

export type Probes = ReturnType<typeof createProbes>;

export function createProbes(deps: { db: () => Queryable; reader: () => Queryable }) {
  const { db } = deps;
  return {
    /** Throws `probes.invalid` with the correction, and `probes.too_many`. */
    add: (actor: Actor, siteId: number, input: ProbeInput) => addProbe(db(), actor, siteId, input),
    /** Changes name, interval, timeout and state. Returns false when the site has no such probe. */
    change: (actor: Actor, siteId: number, probeId: number, change: ProbeChange) =>
      changeProbe(db(), actor, siteId, probeId, change),
    /** Sensors stop measuring it; its history stays until it expires. */
    remove: (actor: Actor, siteId: number, probeId: number) => endProbe(db(), actor, siteId, probeId),
    /** A site's probes by name, each with its newest minute. */
    list: (siteId: number) => store.listProbes(db(), siteId),
    find: (siteId: number, probeId: number) => store.findProbe(db(), siteId, probeId),
    /** The section of the sensors' plans. */
    section: createProbesSection(deps),
    /** Consumes `probes` of uploads; results of unknown probes of the sensor's site are left out. */
    consumer: createProbeConsumer(db),
    /** Each probe of the site over a range, and the site itself (`probeId` null). */
    readAvailability: (siteId: number, fromMs: number, toMs: number) =>
      availability.readAvailability(db(), { siteId, fromMs, toMs }),
    /** A probe in steps of whole minutes; unmeasured steps are missing. */
    readHistory: (probeId: number, fromMs: number, toMs: number, stepSeconds: number) =>
      availability.readHistory(db(), { probeId, fromMs, toMs, stepSeconds }),
    /** The newest measured minutes of every active probe of any site, by the database's clock. */
    listNewestMinutes: (count: number) => listNewestMinutes(db(), count),
    /** Results of each sensor for a probe, in a range of at most a day. */
    listSensorViews: (probeId: number, fromMs: number, toMs: number) =>
      listSensorViews(db(), { probeId, fromMs, toMs }),
  };
}

/** The plan's section `probes`: the probes that a site's sensors measure. */
function createProbesSection(deps: { db: () => Queryable; reader: () => Queryable }): PlanSection {
  return listSection<PlanProbe>({
    name: 'probes',
    label: 'probes',
    entriesMax: probesMax,
    advice: 'Remove probes of this site.',
    versions: { probes_version: 1 },
    list: ({ siteId }) => store.listPlanned(deps.reader(), siteId),
    toFields: (probes) => ({ probes }),
    async countEntries(subjects) {
      const counts = await store.countPlanned(deps.db());
      return new Map(subjects.map(({ sensorId, siteId }) => [sensorId, counts.get(siteId) ?? 0]));
    },
  });
}
