/** One round of judging: turns facts into episodes and notifications, in one transaction. */
import { ifHeld, type Lease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type ChannelKind, channelKinds } from './channels/index.ts';
import { fedKinds, judge, type OpenEpisode, type Subject } from './episode.ts';
import { type FindSubjectsDeps, findSubjects } from './find-subjects.ts';
import { enqueueOpened, enqueueResolved, repeatOpened } from './outbox-store.ts';
import { insertEpisode, listOpen, noteWatch, resolveEpisode, setGoodSince, updateDetails } from './store.ts';

export interface JudgeCounts {
  opened: number;
  resolved: number;
}

/**
 * The lease's row stays locked until the end, so that two processes never judge at the same time; the unique index of
 * open episodes prevents it as well. A process without the lease changes nothing.
 */
export async function judgeSubjects(
  deps: FindSubjectsDeps & { db: () => Queryable },
  lease: Lease,
): Promise<JudgeCounts> {
  const watch = await ifHeld(deps.db(), lease, noteWatch);
  const subjects = await findSubjects(deps, watch?.watchingSeconds ?? 0);
  const counts = { opened: 0, resolved: 0 };
  await ifHeld(deps.db(), lease, async (trx) => {
    const { nowMs } = await noteWatch(trx);
    const open = new Map((await listOpen(trx)).map((one) => [`${one.kind} ${one.subjectKey}`, one]));
    for (const subject of subjects) {
      const key = `${subject.kind} ${subject.key}`;
      await judgeOne(trx, subject, open.get(key) ?? null, nowMs, counts);
      open.delete(key);
    }
    // A subject that is in no list was removed.
    for (const episode of open.values()) {
      if (fedKinds.has(episode.kind)) continue;
      const step = judge(episode.kind, episode, 'gone', nowMs);
      if (step.do === 'resolve') await resolve(trx, episode.id, step.resolution, counts);
    }
    for (const [kind, { repeatSeconds }] of Object.entries<ChannelKind>(channelKinds))
      if (repeatSeconds !== undefined) await repeatOpened(trx, kind, repeatSeconds);
  });
  return counts;
}

async function judgeOne(
  trx: Queryable,
  subject: Subject,
  open: OpenEpisode | null,
  nowMs: number,
  counts: JudgeCounts,
): Promise<void> {
  const step = judge(subject.kind, open, subject.verdict, nowMs);
  if (open && subject.verdict === 'bad') await updateDetails(trx, open.id, subject.details);
  switch (step.do) {
    case 'open': {
      const id = await insertEpisode(trx, subject);
      if (id === null) return;
      counts.opened += 1;
      return enqueueOpened(trx, id);
    }
    case 'recover':
      return setGoodSince(trx, open!.id, true);
    case 'relapse':
      return setGoodSince(trx, open!.id, false);
    case 'resolve':
      return resolve(trx, open!.id, step.resolution, counts);
    case 'nothing':
  }
}

async function resolve(trx: Queryable, id: number, resolution: 'recovered' | 'removed', counts: JudgeCounts) {
  await resolveEpisode(trx, id, resolution);
  await enqueueResolved(trx, id);
  counts.resolved += 1;
}
