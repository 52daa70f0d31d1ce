import type { SensorsDeps } from './deps.ts';
import { listHealth, type StoredHealth } from './health-store.ts';
import type { SectionCount } from './plan-section.ts';
import { countPlans } from './read-plan.ts';

export interface SensorHealth extends StoredHealth {
  /** How full the lists of its plan are. */
  plan: readonly SectionCount[];
}

/** How every sensor is, by the database's clock; of one site or of all. Alerts ask for it every few seconds. */
export async function readHealth(
  deps: Pick<SensorsDeps, 'db' | 'sections'>,
  siteId: number | null,
): Promise<SensorHealth[]> {
  const [stored, plans] = await Promise.all([listHealth(deps.db(), siteId), countPlans(deps, siteId)]);
  return stored.map((sensor) => ({ ...sensor, plan: plans.get(sensor.id) ?? [] }));
}
