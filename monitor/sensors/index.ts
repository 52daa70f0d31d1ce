/**
 * Sensors: how a hypervisor host becomes one, how it proves it afterwards, what it should do, and when it was heard.
 *
 * An enrolment token works once, for one hour; what it gives is a credential that is shown once and stored as a
 * digest. A sensor exchanges its credential for another before it ends (`rotate-credential.ts`). A node has one sensor.
 * Authentication and plans only read, over connections that can do nothing else and that telemetry never takes, so
 * neither its locks nor its crowd delay them (NET-5.3); contact is noted by uploads alone. What a plan holds is up to the
 * sections that features register (`plan-section.ts`).
 */

import { createBatching } from '#common/batching/index.ts';
import { bind } from '#common/bind/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { SensorPlan } from '#contracts/sensor-api/http.ts';
import type { UploadConsumer } from '#monitor/intake/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { type ChangedAddress, listNodes, type NodeName } from '#monitor/placements/index.ts';
import { listClusters } from '#monitor/sites/index.ts';
import { type LeftOutRows, readLeftOut, readPlanScope } from '#monitor/views/sensor-store.ts';
import { recorded } from '#service-kit/audit/index.ts';
import { parseCredential, secretMatches } from '#service-kit/credentials/index.ts';
import type { RequestOrigin } from '#service-kit/http/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type CredentialState, findCredentials, noteMisuse } from './credential-store.ts';
import { chooseNode, createEnrolmentToken, enrolSensor } from './enrol-sensor.ts';
import * as conditions from './health-store.ts';
import { listLags, type SensorLag, summarizeSensors } from './health-store.ts';
import * as inventories from './inventory-store.ts';
import { type SensorInventory, upsertInventories } from './inventory-store.ts';
import type { PlanSection, SectionCount } from './plan-section.ts';
import {
  createFollowUps,
  finishRotation,
  type RotationOutcome,
  requestRotation,
  rotateCredential,
} from './rotate-credential.ts';
import * as store from './store.ts';
import { listSubjects } from './store.ts';

export type { EnrolmentToken } from './enrol-sensor.ts';
export { isClockRight, type KnownCondition, type SensorLag } from './health-store.ts';
export type { HostInterfaces } from './inventory-store.ts';
export {
  listSection,
  type PlanNode,
  type PlanScope,
  type PlanSection,
  type PlanSubject,
  type SectionCount,
  versionSection,
} from './plan-section.ts';
export type { ChosenNode, Contact, EnrolledSensor, SensorState } from './store.ts';

const credentialDaysDefault = 90;

export type Sensors = ReturnType<typeof createSensors>;

export function createSensors(deps: SensorsDeps) {
  const { db, credentialDays = credentialDaysDefault } = deps;
  const check = createAuthentication(deps.reader);
  const followUps = createFollowUps(deps.reporter);
  const checkCredential = async (token: string, origin?: RequestOrigin): Promise<CredentialCheck> => {
    const checked = await check(token);
    if (checked.isTaken) {
      const { id, isNew } = checked.sensor.credentialState;
      // Not waited for: no lock may delay a sensor (NET-5.3).
      if (isNew) followUps.run(id, () => finishRotation(db(), id, origin));
    } else if (checked.why === 'replaced') {
      const { credentialId } = checked;
      followUps.run(credentialId, () => noteMisuse(db(), credentialId));
    }
    return checked;
  };
  return {
    /** Nodes that carry servers of the site's clusters, by name. */
    async listNodes(siteId: number): Promise<NodeName[]> {
      const mapped = (await listClusters(db())).filter((mapping) => mapping.siteId === siteId);
      return listNodes(
        db(),
        mapped.map(({ clusterId }) => clusterId),
      );
    },
    /** The sensor with this bearer token, or null. */
    async authenticate(token: string): Promise<AuthenticatedSensor | null> {
      const checked = await checkCredential(token);
      return checked.isTaken ? checked.sensor : null;
    },
    /** As `authenticate`, with the reason of a refusal. The first use of a new credential ends the old one soon after. */
    checkCredential,
    /** Resolves when what the checks so far have set going is stored. */
    settled: (): Promise<void> => followUps.settled(),
    /** A new credential for the sensor that showed this one, when one is due. */
    rotateCredential: (sensor: AuthenticatedSensor, origin?: RequestOrigin): Promise<RotationOutcome> =>
      rotateCredential(db(), credentialDays, sensor.credentialState.id, origin),
    /** What a sensor of this site should do; without one, what is to be done at the whole site. */
    readPlan: (siteId: number, sensorId?: number): Promise<SensorPlan> =>
      readPlan(deps, siteId, sensorId ?? null),
    noteContacts: store.upsertContacts,
    /** Takes inventories of uploads: of each host the newest is kept. */
    inventoryConsumer: createInventoryConsumer(),
    /** How every sensor is, by the database's clock; of one site or of all. */
    listHealth: (siteId?: number): Promise<SensorHealth[]> => readHealth(deps, siteId ?? null),
    ...bind(() => deps, { chooseNode }),
    ...bind(db, {
      ...{ createToken: createEnrolmentToken, enrol: enrolSensor, requestRotation },
      ...{ noteRefusal: store.upsertRefusal, noteCondition: conditions.upsertCondition },
      ...{ listConditions: conditions.listConditions, listInterfaces: inventories.listInterfaces },
      ...{ list: store.listSensors, summarize: summarizeSensors },
    }),
    /** How far behind sensors are, of all sites. */
    listLags: (limit: number): Promise<SensorLag[]> => listLags(deps.reader(), limit),
    /** Refuses a sensor's credential from now on; its history stays. False: the site has no such sensor. */
    async revoke(actor: Actor, siteId: number, sensorId: number): Promise<boolean> {
      requireOperator(actor);
      const subject = { kind: 'sensor', id: sensorId };
      return recorded(db(), actor, { operation: 'sensor.revoke', subject }, (trx) =>
        store.revokeSensor(trx, siteId, sensorId),
      );
    },
  };
}

/** What sensors need from the rest of the program. */
interface SensorsDeps {
  db: () => Queryable;
  /** Connections that only read, for authentication and plans. */
  reader: () => Queryable;
  /** What the features of the monitor want of sensors. */
  sections: readonly PlanSection[];
  /** A sensor speaks for other addresses than before; in the transaction that says so. */
  onPlaced?: (trx: Queryable, changed: readonly ChangedAddress[]) => Promise<void>;
  /** How long a rotated credential is taken. */
  credentialDays?: number;
  reporter?: Reporter;
}

/** A sensor with the credential that it showed. */
export interface AuthenticatedSensor extends store.EnrolledSensor {
  credentialState: CredentialState;
}

export type CredentialCheck =
  | { isTaken: true; sensor: AuthenticatedSensor }
  /** `expired` and `replaced` are told only to those who know the secret. */
  | { isTaken: false; why: 'unknown' }
  | { isTaken: false; why: 'expired' | 'replaced'; credentialId: string; endedAtMs: number };

/**
 * Tells which sensor a bearer token belongs to. Only reads, and those who ask at the same time are looked up at once;
 * nothing is remembered, so a revoked sensor is refused from its next call on. Unknown ids take the time of known ones.
 */
function createAuthentication(reader: () => Queryable): (token: string) => Promise<CredentialCheck> {
  const find = createBatching({
    itemsMax: 200,
    batchesMax: 2,
    async run(ids: readonly string[]) {
      const found = await findCredentials(reader(), ids);
      return ids.map((id) => found.get(id) ?? null);
    },
  });
  return async (token) => {
    const credential = parseCredential('svcsen', token);
    if (!credential) return { isTaken: false, why: 'unknown' };
    const found = await find(credential.id);
    const isRight = secretMatches(found?.digest ?? null, credential.secret);
    if (!found || !isRight) return { isTaken: false, why: 'unknown' };
    const { id, sensor, expiresAtMs, isRotationDue, isNew, refusal, endedAtMs } = found;
    if (refusal !== null) return { isTaken: false, why: refusal, credentialId: id, endedAtMs: endedAtMs! };
    return {
      isTaken: true,
      sensor: { ...sensor, credentialState: { id, expiresAtMs, isRotationDue, isNew } },
    };
  };
}

export interface SensorHealth extends conditions.StoredHealth {
  /** How full the lists of its plan are. */
  plan: readonly SectionCount[];
  /** Rows that were left out since it was enrolled; null: none was. */
  leftOut: LeftOutRows | null;
}

/** How every sensor is, by the database's clock; of one site or of all. Alerts ask for it every few seconds. */
async function readHealth(
  deps: Pick<SensorsDeps, 'db' | 'sections'>,
  siteId: number | null,
): Promise<SensorHealth[]> {
  const [stored, plans, leftOut] = await Promise.all([
    conditions.listHealth(deps.db(), siteId),
    countPlans(deps, siteId),
    readLeftOut(deps.db()),
  ]);
  return stored.map((sensor) => ({
    ...sensor,
    plan: plans.get(sensor.id) ?? [],
    leftOut: leftOut.get(sensor.id) ?? null,
  }));
}

/** A sensor has contact at least once a minute, and a few minutes may be under way; after this time it is silent. */
export const silentAfterSeconds = 180;

export function isSilentFor(seconds: number): boolean {
  return seconds > silentAfterSeconds;
}

/** One that never had contact has the same time from its enrolment on. */
export function isSilent({ lastContactAtMs, enrolledAtMs }: store.SensorState, nowMs: number): boolean {
  return isSilentFor((nowMs - (lastContactAtMs ?? enrolledAtMs)) / 1000);
}

/** Takes `inventory`. What a clock that is ahead observed counts as observed now, or nothing could replace it for long. */
function createInventoryConsumer(): UploadConsumer<SensorInventory> {
  return {
    kind: 'inventory',
    select({ sensorId, nowMs, upload: { inventory } }) {
      if (!inventory) return null;
      const observedAtMs = Math.min(inventory.observedAtMs, nowMs);
      return { sensorId, inventory: { ...inventory, observedAtMs } };
    },
    apply: upsertInventories,
  };
}

/**
 * What a sensor should do: the settings of its site, and what each section asks of its node. Without a sensor, what every
 * sensor of the site would have to do. The versions say what this monitor understands (NET-9.1, NET-9.4).
 */
async function readPlan(
  deps: Pick<SensorsDeps, 'reader' | 'sections'>,
  siteId: number,
  sensorId: number | null,
): Promise<SensorPlan> {
  const found = await readPlanScope(deps.reader(), siteId, sensorId);
  if (found === null) throw new CodedError('sensors.no_site', 'There is no such site.');
  const { localCidrs, node } = found;
  const fields = await Promise.all(deps.sections.map((section) => section.read({ siteId, node })));
  const plan = Object.assign({ plan_version: 1, local_cidrs: localCidrs }, ...fields);
  const missing = SensorPlan.required.filter((field) => !(field in plan));
  if (missing.length > 0) {
    const text = `No section of the plan has the fields ${missing.join(', ')}. Register it in the composition.`;
    throw new CodedError('sensors.no_section', text);
  }
  return plan as SensorPlan;
}

/** How full the lists of every sensor's plan are, by sensor; of one site or of all. */
async function countPlans(
  deps: Pick<SensorsDeps, 'db' | 'sections'>,
  siteId: number | null,
): Promise<Map<number, SectionCount[]>> {
  const subjects = await listSubjects(deps.db(), siteId);
  const counted = await Promise.all(
    deps.sections.flatMap((section) => (section.count ? [section.count(subjects)] : [])),
  );
  return new Map(
    subjects.map(({ sensorId }) => [sensorId, counted.flatMap((counts) => counts.get(sensorId) ?? [])]),
  );
}

/** Entries that found no room. */
export function leftOutOf({ entries, entriesMax }: SectionCount): number {
  return Math.max(0, entries - entriesMax);
}
