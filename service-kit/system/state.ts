/** The stored state of a program, and what of it is judged. */
import { type LeaseState, listLeases } from '#service-kit/leases/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { judgeDisk } from './disks.ts';
import { judgeLoop } from './loops.ts';
import { type DiskState, listDisks, readDatabaseBytes } from './store.ts';
import type { SystemSubject } from './subject.ts';

export interface SystemState {
  nowMs: number;
  loops: LeaseState[];
  disks: DiskState[];
  databaseBytes: number;
}

export async function readState(db: Queryable): Promise<SystemState> {
  const [nowMs, loops, disks, databaseBytes] = await Promise.all([
    readNowMs(db),
    listLeases(db),
    listDisks(db),
    readDatabaseBytes(db),
  ]);
  return { nowMs, loops, disks, databaseBytes };
}

/** Every disk and every loop. `watchingSeconds`: see `judgeLoop`; pages have watched for ever. */
export function judgeSystem(
  { nowMs, loops, disks }: SystemState,
  watchingSeconds = Number.POSITIVE_INFINITY,
): SystemSubject[] {
  return [...disks.map(judgeDisk), ...loops.flatMap((loop) => judgeLoop(loop, nowMs, watchingSeconds) ?? [])];
}
