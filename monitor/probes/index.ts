/**
 * WAN probes: external targets, their results from sensors, and their availability.
 *
 * A site has at most 32 probes; its sensors receive them in their plan. A result counts once, even if it arrives
 * repeatedly. A minute is up when any sensor of the site got an answer, down when all attempts failed, and unknown when
 * no sensor measured. Unknown minutes are not part of percentages.
 */

import { bind } from '#common/bind/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { PlanProbe } from '#contracts/sensor-api/http.ts';
import { aheadSecondsMax } from '#contracts/sensor-api/http.ts';
import type { ProbeResult } from '#contracts/sensor-api/telemetry.ts';
import { keptSeconds, type UploadConsumer } from '#monitor/intake/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { listSection, type PlanSection } from '#monitor/sensors/index.ts';
import { lockSite } from '#monitor/sites/index.ts';
import { listSensorViews } from '#monitor/views/sensor-store.ts';
import { changedMembers, record, recorded } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import * as availability from './availability-store.ts';
import { listNewestMinutes } from './availability-store.ts';
import { type ProbeChange, type ProbeInput, parseCadence, parseProbe, probesMax } from './probe.ts';
import { createPartitionMaker, insertResults } from './results-store.ts';
import * as store from './store.ts';
import { countProbes, findProbe, insertProbe, removeProbe, updateProbe } from './store.ts';

export type { Availability, HistoryStep, ProbeMinutes } from './availability-store.ts';
export { describeTarget, type Probe, type ProbeInput, probeKinds, probesMax } from './probe.ts';
export type { ProbeState } from './store.ts';

export type Probes = ReturnType<typeof createProbes>;

export function createProbes(deps: { db: () => Queryable; reader: () => Queryable }) {
  const { db } = deps;
  return {
    ...bind(db, {
      ...{ add: addProbe, change: changeProbe, remove: endProbe },
      ...{ list: store.listProbes, find: store.findProbe, listNewestMinutes },
    }),
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

// Stores probe results from uploads.

/** Results of one sensor. */
interface SensorResults {
  siteId: number;
  sensorId: number;
  results: readonly ProbeResult[];
}

/**
 * Consumes `probes`. Results outside the retention time are left out, because a wrong clock must not create partitions
 * for years.
 */
function createProbeConsumer(db: () => Queryable): UploadConsumer<SensorResults> {
  const partitions = createPartitionMaker();
  return {
    kind: 'probes',
    times: ({ probes = [] }) => ({ mentioned: probes.map(({ minute }) => minute) }),
    select({ siteId, sensorId, nowMs, upload: { probes = [] } }) {
      const now = nowMs / 1000;
      const results = probes.filter(
        ({ minute }) => minute > now - keptSeconds && minute < now + aheadSecondsMax,
      );
      return results.length === 0 ? null : { siteId, sensorId, results };
    },
    async prepare(uploads) {
      for (const { results } of uploads) await partitions.ensureDays(db(), results);
    },
    async apply(trx, uploads) {
      for (const { results, ...origin } of uploads) await insertResults(trx, origin, results);
    },
  };
}

/** Adds a probe to a site. The lock on the site's row keeps concurrent calls within the limit. */
async function addProbe(db: Queryable, actor: Actor, siteId: number, input: ProbeInput): Promise<number> {
  requireOperator(actor);
  const probe = parseProbe(input);
  return db.transaction().execute(async (trx) => {
    if (!(await lockSite(trx, siteId))) throw new CodedError('probes.no_site', 'This site does not exist.');
    if ((await countProbes(trx, siteId)) >= probesMax) {
      throw new CodedError('probes.too_many', `A site has at most ${probesMax} probes. Remove one first.`);
    }
    const id = await insertProbe(trx, siteId, probe);
    const subject = { kind: 'probe', id, name: probe.name };
    await record(trx, actor, { operation: 'probe.add', subject, after: { siteId, ...probe } });
    return id;
  });
}

async function changeProbe(
  db: Queryable,
  actor: Actor,
  siteId: number,
  probeId: number,
  change: ProbeChange,
): Promise<boolean> {
  requireOperator(actor);
  const after = { ...parseCadence(change), isEnabled: change.isEnabled };
  return inTransaction(db, async (trx) => {
    const before = await findProbe(trx, siteId, probeId);
    if (!before || !(await updateProbe(trx, siteId, probeId, after))) return false;
    await record(trx, actor, {
      operation: 'probe.change',
      subject: { kind: 'probe', id: probeId, name: after.name },
      ...changedMembers(before, { ...before, ...after }),
    });
    return true;
  });
}

/** Sensors stop measuring it; its history stays. Returns false when the site has no such probe. */
async function endProbe(db: Queryable, actor: Actor, siteId: number, probeId: number): Promise<boolean> {
  requireOperator(actor);
  return recorded(db, actor, { operation: 'probe.remove', subject: { kind: 'probe', id: probeId } }, (trx) =>
    removeProbe(trx, siteId, probeId),
  );
}
