import { backoffMs } from '#common/retry/index.ts';
import { oneLine } from '#common/text/index.ts';
import type { DueAlertMail } from '#operations/views/alert-mail-store.ts';
import type { LoopDeps } from '#service-kit/leases/index.ts';
import type { Mail, Post } from '#service-kit/mail/index.ts';
import { createOutboxSender, type OutboxSender } from '#service-kit/outbox/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type ClaimedMail, claimMail, type MailOrder, recordAttempt } from './store.ts';

export interface AlertMailKind<Due extends DueAlertMail> {
  /** The name of the loop, such as `attack mails`. */
  name: string;
  /** What the mails are about, in log lines: `attacks`. */
  about: string;
  /**
   * The table of the mails, which the declaring feature owns. It has the columns `id`, `public_id`, `person_id`, `status`,
   * `attempts`, `last_error`, `created_at`, `next_attempt_at`, `finished_at`, `term` and `claimed_until`.
   */
  table: string;
  /** Which mails wait for others; none when absent. */
  order?: MailOrder;
  /** Loops in each process. */
  workers: number;
  /** What a mail says and to whom; null when it is sent or not due. */
  find(db: Queryable, mailId: number): Promise<Due | null>;
  write(due: Due, linkTo: (path: string) => string): Mail;
}

interface AlertMailerDeps extends LoopDeps {
  post: Pick<Post, 'send' | 'linkTo'>;
}

const retry = { firstMs: 10_000, maxMs: 1_800_000 };
const expiryMs = 86_400_000;

/** `drain` sends what is due, until nothing is; for tests. */
export function createAlertMailer<Due extends DueAlertMail>(
  kind: AlertMailKind<Due>,
  deps: AlertMailerDeps,
): OutboxSender {
  const { name, about, table, order, workers } = kind;
  return createOutboxSender<ClaimedMail, Due>(
    {
      ...{ name, table, workers },
      failure: `mails about ${about} can not be sent`,
      prepare: async () => false,
      claim: (db, claimSeconds) => claimMail(db, { table, order, claimSeconds }),
      next: (db, mail) => kind.find(db, mail.id),
      attempt: (mail, due) => attempt(kind, deps, mail, due),
    },
    deps,
  );
}

async function attempt<Due extends DueAlertMail>(
  { about, table, write }: AlertMailKind<Due>,
  { db, post, reporter }: AlertMailerDeps,
  mail: ClaimedMail,
  due: Due,
): Promise<boolean> {
  const finish = (status: 'pending' | 'sent' | 'failed' | 'cancelled', error: string | null, pauseMs = 0) =>
    recordAttempt(db(), table, mail, { status, error, retrySeconds: pauseMs / 1000 });
  if (!due.isWanted) return finish('cancelled', null);
  const error = await post.send(write(due, post.linkTo));
  if (error === null) return finish('sent', null);
  const pauseMs = backoffMs(retry, due.attempts + 1);
  const isExpired = due.nowMs + pauseMs > due.createdAt.getTime() + expiryMs;
  reporter.warn(`a mail about ${about} was not sent`, { mail: due.publicId, why: error });
  await (isExpired ? finish('failed', error) : finish('pending', error, pauseMs));
  return false;
}

/** A mail in plain text, with a greeting, these paragraphs, and how to turn such mails off. A link stands alone as a paragraph. */
export function writeAlertMail(
  due: DueAlertMail,
  { subject, paragraphs }: { subject: string; paragraphs: readonly string[] },
): Mail {
  return {
    to: due.email,
    id: due.publicId,
    subject,
    text: `${[
      `Hello ${oneLine(due.personName)},`,
      ...paragraphs,
      `You receive this mail as a member of ${oneLine(due.organizationName)}. The settings of the server’s Protect page turn these mails off.`,
    ].join('\n\n')}\n`,
  };
}
