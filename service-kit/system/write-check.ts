/** Whether the database takes writes: one that has no space left, or is read-only, still answers reads. */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { writeOnce } from './store.ts';

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
