/**
 * Mails when the database takes no writes. Other alerts are stored before they are sent; this one can't be, so it is sent by each
 * process that watches, to those who were to be told when the database last answered.
 */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { writeOnce } from './store.ts';

const checkEveryMs = 15_000;
/** A restart of the database takes a shorter time. */
const toldAfterMs = 60_000;

export function createDatabaseWatch(deps: {
  checkWrites: WriteCheck;
  /** Addresses to mail; asked while the database answers. */
  listRecipients: () => Promise<readonly string[]>;
  post: Pick<Post, 'send'>;
  clock: Clock;
  reporter: Reporter;
  /** Name of the program, for the subject. */
  program: string;
}): Part {
  const { clock, reporter, program } = deps;
  let recipients: readonly string[] = [];
  let failingSinceMs: number | null = null;
  let isTold = false;
  let abort = new AbortController();
  let finished: Promise<void> = Promise.resolve();

  async function tell(subject: string, text: string): Promise<void> {
    for (const to of recipients) {
      const fault = await deps.post.send({ to, subject: `${program}: ${subject}`, text });
      if (fault !== null) reporter.warn('an alert of the database was not mailed', { why: fault });
    }
  }

  async function check(): Promise<void> {
    const problem = await deps.checkWrites();
    if (problem === null) {
      if (isTold) {
        reporter.info('the database takes writes again');
        await tell('the database takes writes again', `The database of ${program} takes writes again.\n`);
      }
      failingSinceMs = null;
      isTold = false;
      recipients = await deps.listRecipients();
      return;
    }
    failingSinceMs ??= clock.monotonicMs();
    if (isTold || clock.monotonicMs() - failingSinceMs < toldAfterMs) return;
    isTold = true;
    reporter.error('the database takes no writes', { problem });
    await tell('the database takes no writes', `The database of ${program} ${problem}.\n`);
  }

  async function loop(): Promise<void> {
    while (!abort.signal.aborted) {
      await check().catch((error) =>
        reporter.warn('the database was not checked', { error: describeError(error) }),
      );
      await clock.wait(checkEveryMs, abort.signal);
    }
  }

  return {
    name: 'database watch',
    async start() {
      abort = new AbortController();
      finished = loop();
    },
    async stop() {
      abort.abort();
      await finished;
    },
  };
}

// Whether the database takes writes: one that has no space left, or is read-only, still answers reads.

/** Null when a write was committed; else the reason, in words of ours. */
export type WriteCheck = () => Promise<string | null>;

/** Anyone may ask for the readiness of a program, so a success serves for this long. */
const reuseMs = 1_000;
const answerMs = 5_000;
const noAnswer = 'does not answer';

/** Callers at the same time share one write, so that a database that hangs holds one connection for it. */
export function createWriteCheck(db: () => Queryable): WriteCheck {
  let running: Promise<string | null> | null = null;
  let succeededAtMs = Number.NEGATIVE_INFINITY;
  const attempt = async () => {
    try {
      await writeOnce(db());
      succeededAtMs = performance.now();
      return null;
    } catch (error) {
      return describeWriteFault(error);
    } finally {
      running = null;
    }
  };
  return async () => {
    if (performance.now() - succeededAtMs < reuseMs) return null;
    running ??= attempt();
    const late = Promise.withResolvers<string>();
    const timer = setTimeout(() => late.resolve(noAnswer), answerMs);
    return Promise.race([running, late.promise]).finally(() => clearTimeout(timer));
  };
}

/** Readiness is public, so an address or a name that the error holds is left out. */
function describeWriteFault(error: unknown): string {
  switch ((error as { code?: unknown }).code) {
    case '53100':
      return 'takes no writes: no space left on its disk';
    case '25006':
      return 'takes no writes: it is read-only';
    case '42501':
      return 'takes no writes: the program may not create temporary tables';
    case '53300':
      return 'does not answer: it has no connection left';
    default:
      return noAnswer;
  }
}
