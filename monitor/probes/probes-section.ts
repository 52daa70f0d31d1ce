/** The plan's section `probes`: the probes that a site's sensors measure. */
import type { PlanProbe } from '#contracts/sensor-api/http.ts';
import { listSection, type PlanSection } from '#monitor/sensors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { probesMax } from './probe.ts';
import { countPlanned, listPlanned } from './store.ts';

export function createProbesSection(deps: { db: () => Queryable; reader: () => Queryable }): PlanSection {
  return listSection<PlanProbe>({
    name: 'probes',
    label: 'probes',
    entriesMax: probesMax,
    advice: 'Remove probes of this site.',
    versions: { probes_version: 1 },
    list: ({ siteId }) => listPlanned(deps.reader(), siteId),
    toFields: (probes) => ({ probes }),
    async countEntries(subjects) {
      const counts = await countPlanned(deps.db());
      return new Map(subjects.map(({ sensorId, siteId }) => [sensorId, counts.get(siteId) ?? 0]));
    },
  });
}
