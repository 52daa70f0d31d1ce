import { type LeftOutRows, readLeftOut } from '#monitor/views/index.ts';
import type { SensorsDeps } from './deps.ts';
import { listHealth, type StoredHealth } from './health-store.ts';
import type { SectionCount } from './plan-section.ts';
import { countPlans } from './read-plan.ts';

export interface SensorHealth extends StoredHealth {
  /** How full the lists of its plan are. */
  plan: readonly SectionCount[];
  /** Rows that were left out since it was enrolled; null: none was. */
  leftOut: LeftOutRows | null;
}

/** How every sensor is, by the database's clock; of one site or of all. Alerts ask for it every few seconds. */
export async function readHealth(
  deps: Pick<SensorsDeps, 'db' | 'sections'>,
  siteId: number | null,
): Promise<SensorHealth[]> {
  const [stored, plans, leftOut] = await Promise.all([
    listHealth(deps.db(), siteId),
    countPlans(deps, siteId),
    readLeftOut(deps.db()),
  ]);
  return stored.map((sensor) => ({
    ...sensor,
    plan: plans.get(sensor.id) ?? [],
    leftOut: leftOut.get(sensor.id) ?? null,
  }));
}
