/**
 * Sends queued mails about newly open ports at least once, each under one Message-ID. Any number of processes may run it. A
 * mail that its reader does not want any more is cancelled; one that could not be sent for a day is given up.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { backoffMs } from '#common/retry/index.ts';
import type { DuePortMail } from '#operations/views/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { createOutboxSender, type OutboxSender } from '#service-kit/outbox/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './alert-store.ts';
import { portMail } from './port-mail.ts';

export interface PortMailerDeps {
  db: () => Queryable;
  post: Pick<Post, 'send' | 'linkTo'>;
  clock: Clock;
  reporter: Reporter;
}

const retry = { firstMs: 10_000, maxMs: 1_800_000 };
const expiryMs = 86_400_000;

/** `drain` sends what is due, until nothing is; for tests. */
export function createPortMailer(deps: PortMailerDeps): OutboxSender {
  return createOutboxSender<store.ClaimedMail, DuePortMail>(
    {
      name: 'port mails',
      failure: 'mails about open ports can not be sent',
      table: 'port_mails',
      workers: 1,
      prepare: async () => false,
      claim: store.claimMail,
      next: (db, mail) => store.findDuePortMail(db, mail.id),
      attempt: (mail, due) => attempt(deps, mail, due),
    },
    deps,
  );
}

async function attempt(deps: PortMailerDeps, mail: store.ClaimedMail, due: DuePortMail): Promise<boolean> {
  const finish = (status: store.MailOutcome['status'], error: string | null = null, retrySeconds = 0) =>
    store.recordAttempt(deps.db(), mail, { status, error, retrySeconds });
  if (!due.isWanted) return finish('cancelled');
  const url = deps.post.linkTo(`/client/servers/${due.serverId}/protect#ports`);
  const error = await deps.post.send(portMail(due, url));
  if (error === null) return finish('sent');
  const pauseMs = backoffMs(retry, due.attempts + 1);
  const isExpired = due.nowMs + pauseMs > due.createdAt.getTime() + expiryMs;
  deps.reporter.warn('a mail about open ports was not sent', { mail: due.publicId, why: error });
  if (isExpired) await finish('failed', error);
  else await finish('pending', error, pauseMs / 1000);
  return false;
}
