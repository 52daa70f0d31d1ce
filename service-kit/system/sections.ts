/** Sections of a page System: the disks with the program's data, and its loops. */
import type { FastifyRequest } from 'fastify';
import { type LeaseState, listLeases } from '#service-kit/leases/index.ts';
import {
  age,
  badge,
  type Content,
  code,
  formatBytes,
  formatDuration,
  formatPercent,
  isoTime,
  section,
} from '#service-kit/pages/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { dataTable } from '#service-kit/web/index.ts';
import { hoursLeft, judgeDisk, type SystemSubject } from './disks.ts';
import { listDisks, readDatabaseBytes } from './store.ts';

/** `workOf`: what a loop does, by the name of its lease. */
export function systemSections(
  request: FastifyRequest,
  state: SystemState,
  workOf: (loop: string) => string,
): Content {
  return [loops(request, state, workOf), disks(request, state)];
}

function loops(request: FastifyRequest, state: SystemState, workOf: (loop: string) => string): Content {
  const isBad = (loop: LeaseState) =>
    judgeLoop(loop, state.nowMs, Number.POSITIVE_INFINITY)?.verdict === 'bad';
  const stateOf = (loop: LeaseState) =>
    loop.lastError !== null ? 'failing' : isBad(loop) ? 'late' : loop.isHeld ? 'held' : 'free';
  return section(
    {
      id: 'loops',
      title: 'Loops',
      description: 'Each loop runs in one process at a time. A free loop waits for its next turn.',
    },
    dataTable(request, {
      id: 'loops',
      caption: 'Loops',
      card: { line: ['state', 'success'], without: ['holder'] },
      rows: state.loops,
      rowTone: (loop) => (isBad(loop) ? 'warn' : undefined),
      columns: [
        { key: 'name', header: 'Loop', kind: 'code', cell: ({ name }) => name, value: ({ name }) => name },
        {
          key: 'state',
          header: 'State',
          cell: (loop) => {
            const word = stateOf(loop);
            return badge(word === 'held' ? 'good' : word === 'free' ? 'neutral' : 'bad', word);
          },
          value: stateOf,
        },
        {
          key: 'work',
          header: 'What it does',
          cell: ({ name, lastError }) => lastError ?? workOf(name),
          value: ({ name }) => workOf(name),
        },
        {
          key: 'success',
          header: 'Last success',
          kind: 'figure',
          // What takes its lease for work at hand has no runs that succeed.
          cell: ({ intervalSeconds, succeededAtMs }) =>
            intervalSeconds === null ? '–' : age(succeededAtMs, state.nowMs),
          value: ({ succeededAtMs }) => (succeededAtMs === null ? null : isoTime(succeededAtMs)),
        },
        {
          key: 'holder',
          header: 'Last process',
          cell: ({ holder }) => code(holder.split('-', 2).join('-')),
          value: ({ holder }) => holder,
        },
      ],
      fields: [{ field: 'last_error', value: ({ lastError }) => lastError }],
      empty: { title: 'No loop has run yet', text: 'Loops appear when they first take their lease.' },
    }),
  );
}

function disks(request: FastifyRequest, { disks: rows, databaseBytes }: SystemState): Content {
  return section(
    {
      id: 'disks',
      title: 'Disks',
      description: `Disks with data folders of this program. The database has ${formatBytes(databaseBytes)}.`,
    },
    dataTable(request, {
      id: 'disks',
      caption: 'Disks',
      card: { line: ['free', 'full'] },
      rows,
      rowTone: (disk) => (judgeDisk(disk).verdict === 'bad' ? 'warn' : undefined),
      columns: [
        { key: 'host', header: 'Machine', cell: ({ host }) => host, value: ({ host }) => host },
        { key: 'path', header: 'Folder', kind: 'code', cell: ({ path }) => path, value: ({ path }) => path },
        {
          key: 'free',
          header: 'Free',
          kind: 'figure',
          cell: ({ freeBytes, totalBytes }) =>
            `${formatBytes(freeBytes)} (${formatPercent(freeBytes / Math.max(1, totalBytes))})`,
          value: ({ freeBytes }) => freeBytes,
        },
        {
          key: 'full',
          header: 'Full in',
          kind: 'figure',
          cell: (disk) => {
            const hours = hoursLeft(disk);
            return hours === null ? 'not filling' : formatDuration(hours * 3600);
          },
          value: hoursLeft,
        },
      ],
      empty: { title: 'No sample yet', text: 'Each process samples the disk with its data once a minute.' },
    }),
  );
}

// Loops: whether they run and succeed.

/** A loop that fails for a shorter time is no trouble, nor one that begins this much later than it should. */
const failingSecondsMin = 120;
const lateSeconds = 300;

/**
 * Null where no loop runs under the lease. `watchingSeconds`: how long the caller has watched without a break; after a pause of
 * everything each loop is late, and begins soon.
 */
function judgeLoop(loop: LeaseState, nowMs: number, watchingSeconds: number): SystemSubject | null {
  const { name, intervalSeconds, succeededAtMs, failingSinceMs, lastError } = loop;
  if (intervalSeconds === null) return null;
  const isFailing = lastError !== null && failingSinceMs !== null;
  const sinceMs = isFailing ? failingSinceMs : (succeededAtMs ?? loop.acquiredAtMs);
  const seconds = Math.max(0, Math.round((nowMs - sinceMs) / 1000));
  // A long run renews its lease.
  const isLate = isFailing
    ? seconds >= failingSecondsMin
    : !loop.isHeld && seconds > 2 * intervalSeconds + lateSeconds;
  const isKnown = isFailing || watchingSeconds > lateSeconds;
  return {
    kind: 'loop_failing',
    key: `loop:${name}`,
    name,
    verdict: isLate ? (isKnown ? 'bad' : 'unknown') : isFailing ? 'unknown' : 'good',
    details: { seconds, error: isFailing ? lastError : null },
  };
}

// The stored state of a program, and what of it is judged.

export type SystemState = Awaited<ReturnType<typeof readState>>;

export async function readState(db: Queryable) {
  const [nowMs, loops, disks, databaseBytes] = await Promise.all([
    readNowMs(db),
    listLeases(db),
    listDisks(db),
    readDatabaseBytes(db),
  ]);
  return { nowMs, loops, disks, databaseBytes };
}

/** Every disk and every loop. `watchingSeconds`: see `judgeLoop`; pages count as having always watched. */
export function judgeSystem(
  { nowMs, loops, disks }: SystemState,
  watchingSeconds = Number.POSITIVE_INFINITY,
): SystemSubject[] {
  return [...disks.map(judgeDisk), ...loops.flatMap((loop) => judgeLoop(loop, nowMs, watchingSeconds) ?? [])];
}
