/** The plan's section `filter`: what the filters at the uplinks of a site's hypervisors drop, or count. */

import type { AttackDirection } from '#contracts/incidents.ts';
import { filterRulesMax, matchesOf, type PlanFilterRule } from '#contracts/sensor-api/filter.ts';
import { listSection, type PlanSection } from '#monitor/sensors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type ActiveFilter, listActiveFilters } from './actions-store.ts';

export function createFilterSection({
  db,
  reader,
}: {
  db: () => Queryable;
  /** Connections that only read, for what plans ask (NET-5.3). */
  reader: () => Queryable;
}): PlanSection {
  return listSection<ReturnType<typeof rulesOf>[number]>({
    name: 'filter',
    label: 'rules of filters',
    entriesMax: filterRulesMax,
    advice: 'Lower the number of addresses that may have actions at once. Left out are the newest rules.',
    versions: { filter_version: 1 },
    list: async ({ siteId }) => (await listActiveFilters(reader(), siteId)).flatMap(rulesOf),
    toFields(entries) {
      const of = (direction: AttackDirection) =>
        entries.filter((entry) => entry.direction === direction).map(({ rule }) => rule);
      return { filter_rules: of('inbound'), outbound_filter_rules: of('outbound') };
    },
    async countEntries(subjects) {
      const counts = new Map<number, number>();
      for (const siteId of new Set(subjects.map((subject) => subject.siteId)))
        counts.set(siteId, (await listActiveFilters(db(), siteId)).flatMap(rulesOf).length);
      return new Map(subjects.map(({ sensorId, siteId }) => [sensorId, counts.get(siteId)!]));
    },
  });
}

function rulesOf({
  address,
  target,
  attack,
  dropAtMs,
  isDryRun,
  startedAtMs,
}: ActiveFilter): { direction: AttackDirection; rule: PlanFilterRule }[] {
  const time = (ms: number) => new Date(ms).toISOString();
  const { lengthMin, lengthMax, maxSeconds } = target;
  return matchesOf(attack, address).map(({ class: name, match }) => ({
    direction: attack.direction,
    rule: {
      ...{ target: address, class: name },
      match: {
        ...match,
        ...(lengthMin !== undefined && { length_min: lengthMin }),
        ...(lengthMax !== undefined && { length_max: lengthMax }),
      },
      began_at: time(attack.startedAtMs),
      drops_at: dropAtMs === null || isDryRun ? null : time(dropAtMs),
      ends_at: time(startedAtMs + maxSeconds! * 1000),
    },
  }));
}
