import type { FastifyReply, FastifyRequest } from 'fastify';
import { onClosed, waitingAnswers } from '#service-kit/http/index.ts';
import type { Notifications, WaitOptions } from '#service-kit/notifications/index.ts';
import type { Call } from '../call.ts';

/** The longest that one call waits, in seconds. */
export const waitSecondsMax = 30;

/** How long the caller would like to wait (`Prefer: wait=20`, RFC 7240), bounded; null where it says nothing. */
export function readWait(request: FastifyRequest, reply: FastifyReply): number | null {
  const text = [request.headers.prefer].flat().join(',');
  const match = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?=$|[,;])/i.exec(text);
  if (!match) return null;
  const seconds = Math.min(Number(match[1]), waitSecondsMax);
  reply.header('preference-applied', `wait=${seconds}`);
  return seconds;
}

/** How long a wait goes on before the key is looked at again. */
const lookAgainMs = 5_000;

/**
 * Waits as `Notifications.waitFor` does, and authenticates the call anew before it answers and every few seconds: a key
 * that is revoked meanwhile gets the 401 of any other call, and nothing of what it waited for.
 */
export async function waitWhileAllowed<T>(
  notifications: Notifications,
  call: Call,
  { wait, look, isEnough }: { wait: WaitOptions; look: () => Promise<T>; isEnough: (seen: T) => boolean },
): Promise<T> {
  for (let leftMs = wait.timeoutMs; ; leftMs -= lookAgainMs) {
    const timeoutMs = Math.min(leftMs, lookAgainMs);
    const seen = await notifications.waitFor({ ...wait, timeoutMs }, look, isEnough);
    await call.authenticateAgain();
    if (isEnough(seen) || leftMs <= lookAgainMs || wait.signal?.aborted) return seen;
  }
}

/** Aborted when the caller disconnects, also if that was before, so that no wait outlives its caller. */
export function callerSignal(reply: FastifyReply): AbortSignal {
  waitingAnswers.add(reply);
  const gone = new AbortController();
  onClosed(reply, () => gone.abort());
  return gone.signal;
}
