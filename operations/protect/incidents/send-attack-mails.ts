/**
 * Sends queued mails about attacks at least once, the start before the end, each under one Message-ID.
 *
 * Any number of processes may run it. A mail that its reader does not want any more is cancelled; one that could not be sent
 * for a day is given up.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { backoffMs } from '#common/retry/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { createOutboxSender, type OutboxSender } from '#service-kit/outbox/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './alert-store.ts';
import { attackMail } from './attack-mail.ts';

export interface AttackMailerDeps {
  db: () => Queryable;
  post: Pick<Post, 'send' | 'linkTo'>;
  clock: Clock;
  reporter: Reporter;
}

const retry = { firstMs: 10_000, maxMs: 1_800_000 };
const expiryMs = 86_400_000;
const workers = 2;

type DueMail = NonNullable<Awaited<ReturnType<typeof store.findDueMail>>>;

/** `drain` sends what is due, until nothing is; for tests. */
export function createAttackMailer(deps: AttackMailerDeps): OutboxSender {
  return createOutboxSender<store.ClaimedMail, DueMail>(
    {
      name: 'attack mails',
      failure: 'mails about attacks can not be sent',
      table: 'attack_mails',
      workers,
      prepare: async () => false,
      claim: store.claimMail,
      next: (db, mail) => store.findDueMail(db, mail.id),
      attempt: (mail, due) => attempt(deps, mail, due),
    },
    deps,
  );
}

async function attempt(deps: AttackMailerDeps, mail: store.ClaimedMail, due: DueMail): Promise<boolean> {
  if (!due.isWanted) return finish(deps, mail, { status: 'cancelled', error: null, retrySeconds: 0 });
  const page = `/client/servers/${due.serverId}/protect/incidents/${due.incidentId}`;
  const error = await deps.post.send(attackMail(due, deps.post.linkTo(page)));
  if (error === null) return finish(deps, mail, { status: 'sent', error, retrySeconds: 0 });
  const pauseMs = backoffMs(retry, due.attempts + 1);
  const isExpired = due.nowMs + pauseMs > due.createdAt.getTime() + expiryMs;
  deps.reporter.warn('a mail about an attack was not sent', { mail: due.publicId, why: error });
  await finish(deps, mail, {
    status: isExpired ? 'failed' : 'pending',
    error,
    retrySeconds: isExpired ? 0 : pauseMs / 1000,
  });
  return false;
}

const finish = (deps: AttackMailerDeps, mail: store.ClaimedMail, outcome: store.MailOutcome) =>
  store.recordAttempt(deps.db(), mail, outcome);
