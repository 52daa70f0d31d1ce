import { CodedError } from '#common/errors/index.ts';
import type { SensorPlan } from '#contracts/sensor-api/http.ts';
import type { SensorsDeps } from './index.ts';
import { readLocalCidrs } from './store.ts';

/** Targets of a plan; the contract's bound. What finds no place is counted in the plan and alerted. */
export const targetsMax = 4096;

/**
 * What a sensor should do; without one, what every sensor of the site would have to do. Targets are those of its node's
 * servers, and those that no node is known to carry. The versions tell it what this monitor understands (NET-9.1,
 * NET-9.4).
 */
export async function readPlan(
  deps: SensorsDeps,
  siteId: number,
  sensorId: number | null,
): Promise<SensorPlan> {
  const [localCidrs, targets, probes] = await Promise.all([
    readLocalCidrs(deps.reader(), siteId),
    deps.protectedTargets(siteId, sensorId),
    deps.plannedProbes?.(siteId) ?? [],
  ]);
  const unique = [...new Set(targets)].sort();
  if (localCidrs === null) throw new CodedError('sensors.no_site', 'There is no such site.');
  return {
    plan_version: 1,
    application_usage_version: 1,
    application_protocol_version: 1,
    live_version: 1,
    probes_version: 1,
    probes,
    local_cidrs: localCidrs,
    // Sorted, so that an unchanged plan keeps its ETag.
    protected_targets: unique.slice(0, targetsMax),
    ...(unique.length > targetsMax ? { protected_targets_left_out: unique.length - targetsMax } : {}),
  };
}
