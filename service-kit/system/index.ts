/**
 * The state of a program itself, for its readiness, metrics, alerts and its page System: disks, loops, and whether the database
 * takes writes.
 *
 * Disks and loops are judged from stored facts by the database's clock, so every process has the same result. That the database
 * takes no writes can't be stored; each process finds it out by itself.
 */

import type { Meters } from '#service-kit/metrics/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createWriteCheck } from './database-watch.ts';
import { createDiskWatch, type DiskWatchDeps, hoursLeft } from './disks.ts';
import { readState, type SystemState } from './sections.ts';

export type { WriteCheck } from './database-watch.ts';
export { createDatabaseWatch } from './database-watch.ts';
export { diskLimits, measuredOfSystem, type SystemSubject, systemKindNames } from './disks.ts';
export { judgeSystem, type SystemState, systemSections } from './sections.ts';

export type System = ReturnType<typeof createSystem>;

export function createSystem(
  deps: DiskWatchDeps & {
    /** Connections that only read; the same as the others when absent. */
    reader?: () => Queryable;
  },
) {
  const reader = deps.reader ?? deps.db;
  return {
    /** Samples the disk; for every process. */
    watch: createDiskWatch(deps),
    checkWrites: createWriteCheck(deps.db),
    read: () => readState(reader()),
  };
}

/** What shows a state; null removes what the last one had set. */
type ShowSystem = (state: (SystemState & { writeProblem: string | null }) | null) => void;

/** Metrics of disks, loops and the database, the same in both programs. */
export function createSystemGauges({ gauge }: Pick<Meters, 'gauge'>): ShowSystem {
  const gauges = {
    success: gauge('loop_last_success_timestamp_seconds', 'Time of the last successful run of a loop.', [
      'loop',
    ]),
    failing: gauge('loop_failing', '1 when the last run of a loop failed.', ['loop']),
    free: gauge('disk_free_bytes', 'Free bytes of the disk with the data folder.', ['host', 'path']),
    hours: gauge(
      'disk_hours_left',
      'Hours until that disk is full at the speed of the last six hours; absent while it does not fill.',
      ['host', 'path'],
    ),
    writable: gauge('database_writable', '1 when the database took a write at this scrape.'),
    bytes: gauge('database_bytes', 'Size of the database on its disk.'),
  };
  return (state) => {
    for (const one of Object.values(gauges)) one.reset();
    if (state === null) return gauges.bytes.remove();
    gauges.writable.set(state.writeProblem === null ? 1 : 0);
    gauges.bytes.set(state.databaseBytes);
    for (const { name, intervalSeconds, succeededAtMs, lastError } of state.loops) {
      if (intervalSeconds === null) continue;
      if (succeededAtMs !== null) gauges.success.set({ loop: name }, succeededAtMs / 1000);
      gauges.failing.set({ loop: name }, lastError === null ? 0 : 1);
    }
    for (const disk of state.disks) {
      const { host, path } = disk;
      gauges.free.set({ host, path }, disk.freeBytes);
      const hours = hoursLeft(disk);
      if (hours !== null) gauges.hours.set({ host, path }, hours);
    }
  };
}
