/**
 * The scan targets of a sensor as a section of what it is asked for: they travel in a plan of their own, so the section
 * carries nothing, and counts what found no room (NET-8.5).
 */
import { scanTargetsMax } from '#contracts/sensor-api/port-scans.ts';
import type { PlanSection } from '#monitor/sensors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { countEntries } from './plan-store.ts';

const label = 'port scan targets';
const advice = 'Move servers to other nodes: the addresses that are left out are not scanned.';

export function createScanSection(db: () => Queryable): PlanSection {
  return {
    name: 'port_scans',
    read: async () => ({}),
    async count(subjects) {
      const counted = await countEntries(db());
      return new Map(
        subjects.map(({ sensorId }) => {
          const entries = counted.get(sensorId) ?? 0;
          return [sensorId, { section: 'port_scans', label, entries, entriesMax: scanTargetsMax, advice }];
        }),
      );
    },
  };
}
