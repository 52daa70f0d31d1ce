/** Subjects of the monitor itself, of no site but hand-off: its disks and loops, feeds among them, the inbox, hand-off. */
import type { Feeds } from '#monitor/feeds/index.ts';
import type { FailingRule, HandOff } from '#monitor/hand-off/index.ts';
import type { Inbox } from '#monitor/inbox/index.ts';
import { judgeSystem, type System } from '#service-kit/system/index.ts';
import { between, type Subject } from './episode.ts';

/** Age of the oldest upload that waits; they normally wait less than a second. */
export const waitingSeconds = { goodBelow: 30, badFrom: 120 };

export interface FindOwnSubjectsDeps {
  system: Pick<System, 'read'>;
  feeds: Pick<Feeds, 'all'>;
  inbox: Pick<Inbox, 'state'>;
  handOff: Pick<HandOff, 'listFailing'>;
}

export async function findOwnSubjects(
  deps: FindOwnSubjectsDeps,
  watchingSeconds: number,
): Promise<Subject[]> {
  const [state, inbox, rules] = await Promise.all([
    deps.system.read(),
    deps.inbox.state(),
    deps.handOff.listFailing(),
  ]);
  const titles = new Map(deps.feeds.all.map(({ feed }) => [feed.loop, `feed ${feed.title}`]));
  return [
    ...judgeSystem(state, watchingSeconds).map((subject) => ({
      ...subject,
      siteId: null,
      name: titles.get(subject.name) ?? subject.name,
    })),
    {
      kind: 'uploads_waiting',
      key: 'inbox',
      siteId: null,
      name: 'inbox',
      verdict: between(inbox.oldestSeconds ?? 0, waitingSeconds.goodBelow, waitingSeconds.badFrom),
      details: { pending: inbox.pending, oldest_seconds: Math.round(inbox.oldestSeconds ?? 0) },
    },
    ...rules.map(failingRule),
  ];
}

function failingRule(rule: FailingRule): Subject {
  return {
    kind: 'hand_off_failing',
    key: `hand-off:${rule.id}`,
    siteId: rule.siteId,
    name: rule.name,
    verdict: rule.failing > 0 ? 'bad' : 'good',
    details: { failing: rule.failing, error: rule.lastError },
  };
}
