import type { FastifyReply } from 'fastify';

/** Answers that wait for something because their callers want it: they are not slow. */
export const waitingAnswers = new WeakSet<FastifyReply>();

/**
 * Calls `end` once, when the answer has been sent or the caller has gone, also where that has happened by now: the hooks before
 * may have waited for the database, and what a request holds has to be given back.
 */
export function onClosed({ raw }: FastifyReply, end: () => void): void {
  if (raw.closed) end();
  else raw.once('close', end);
}
