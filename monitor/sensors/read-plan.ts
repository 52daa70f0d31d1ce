import { CodedError } from '#common/errors/index.ts';
import { SensorPlan } from '#contracts/sensor-api/http.ts';
import { readPlanScope } from '#monitor/views/index.ts';
import type { SensorsDeps } from './index.ts';
import type { SectionCount } from './plan-section.ts';
import { listSubjects } from './store.ts';

/**
 * What a sensor should do: the settings of its site, and what each section asks of its node. Without a sensor, what every
 * sensor of the site would have to do. The versions say what this monitor understands (NET-9.1, NET-9.4).
 */
export async function readPlan(
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
export async function countPlans(
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
