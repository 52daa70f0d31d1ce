/**
 * Sections of a plan: each feature that wants something of sensors owns one and registers it in the composition.
 *
 * A section advertises its versions, so that a sensor sends only what this monitor takes, and it may carry a list with a
 * bound. The bound is applied in one place: entries above it are counted for every sensor, shown on the sensor's page
 * and alerted.
 */
import type { SensorPlan } from '#contracts/sensor-api/http.ts';

/** A node of a site, as a sensor is bound to it. */
export interface PlanNode {
  name: string;
  /** Null: in any cluster of the site that has a node of this name. */
  clusterId: number | null;
}

/** Which plan is asked for: the one of a node; without a node, the one that every sensor of the site would follow. */
export interface PlanScope {
  siteId: number;
  node: PlanNode | null;
}

/** A sensor and the scope of its plan. */
export interface PlanSubject extends PlanScope {
  sensorId: number;
  node: PlanNode;
}

/** Fields of the wire that belong to sections; the others are settings of the site. */
export type SectionFields = Partial<
  Omit<SensorPlan, 'plan_version' | 'local_cidrs' | 'credential_version' | 'credential'>
>;

/** Entries of one section in one sensor's plan. */
export interface SectionCount {
  section: string;
  label: string;
  /** What the plan would hold without the bound. */
  entries: number;
  entriesMax: number;
  /** What to do when some are left out. */
  advice: string;
}

export interface PlanSection {
  readonly name: string;
  /** The fields of the wire, within the bound. Uses connections that only read (NET-5.3). */
  read(scope: PlanScope): Promise<SectionFields>;
  /** Counts by sensor, of all sensors with one question to the database; null for a section without a list. */
  readonly count: ((subjects: readonly PlanSubject[]) => Promise<ReadonlyMap<number, SectionCount>>) | null;
}

/** A section that says what the monitor takes and carries nothing else. */
export function versionSection(name: string, versions: SectionFields): PlanSection {
  return { name, read: async () => versions, count: null };
}

export interface ListSection<Entry> {
  name: string;
  /** The entries on pages and in alerts: `protected addresses`. */
  label: string;
  /** The bound of the contract. */
  entriesMax: number;
  advice: string;
  versions: SectionFields;
  /** Every entry, in an order that lasts: an unchanged plan keeps its ETag. */
  list(scope: PlanScope): Promise<readonly Entry[]>;
  /** The fields of the wire for the entries that found room, and how many did not. */
  toFields(entries: Entry[], leftOut: number): SectionFields;
  /** How many entries each sensor's plan would have without the bound; none for a sensor that is missing. */
  countEntries(subjects: readonly PlanSubject[]): Promise<ReadonlyMap<number, number>>;
}

/** A section with a list of entries. */
export function listSection<Entry>(declared: ListSection<Entry>): PlanSection {
  const { name: section, label, entriesMax, advice } = declared;
  return {
    name: section,
    async read(scope) {
      const entries = await declared.list(scope);
      const leftOut = Math.max(0, entries.length - entriesMax);
      return { ...declared.versions, ...declared.toFields(entries.slice(0, entriesMax), leftOut) };
    },
    async count(subjects) {
      const counts = await declared.countEntries(subjects);
      return new Map(
        subjects.map(({ sensorId }) => {
          const entries = counts.get(sensorId) ?? 0;
          return [sensorId, { section, label, entries, entriesMax, advice }];
        }),
      );
    },
  };
}
