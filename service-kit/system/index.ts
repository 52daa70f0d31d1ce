/**
 * The state of a program itself, for its readiness, metrics, alerts and its page System: disks, loops, and whether the database
 * takes writes.
 *
 * Disks and loops are judged from stored facts by the database's clock, so every process has the same result. That the database
 * takes no writes can't be stored; each process finds it out by itself.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createDiskWatch, type DiskWatchDeps } from './disks.ts';
import { readState } from './state.ts';
import { createWriteCheck } from './write-check.ts';

export { createDatabaseWatch } from './database-watch.ts';
export { diskLimits } from './disks.ts';
export { createSystemGauges } from './meters.ts';
export { systemSections } from './sections.ts';
export { judgeSystem, type SystemState } from './state.ts';
export { measuredOfSystem, type SystemSubject, systemKindNames } from './subject.ts';
export type { WriteCheck } from './write-check.ts';

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
