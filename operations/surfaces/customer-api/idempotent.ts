import type { FastifyReply, FastifyRequest } from 'fastify';
import { hasCode } from '#common/errors/index.ts';
import type { Claim, Idempotency, Result } from '#operations/idempotency/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import type { Call } from './call.ts';

export interface RepeatableWork<T> {
  call: Call;
  request: FastifyRequest;
  reply: FastifyReply;
  /** The checked body. */
  body: unknown;
  /** Does the work; `claim` must be bound in the transaction that makes its result. */
  run(claim: Claim | null): Promise<T>;
  /** Answers for what the first call made. */
  replay(result: Result): Promise<T>;
}

/**
 * Runs the work of a call, once for each `Idempotency-Key`. Without the header every call is a new one (API-4.5).
 *
 * A call that made nothing gives its key back: what was wrong with it can be mended and sent again.
 */
export async function idempotent<T>(idempotency: Idempotency, work: RepeatableWork<T>): Promise<T> {
  const idempotencyKey = readKey(work.request);
  if (idempotencyKey === null) return work.run(null);
  const begun = await idempotency.begin({
    keyId: work.call.principal.keyId,
    method: work.request.method,
    path: work.request.url.split('?', 1)[0]!.replace(/\/$/, ''),
    idempotencyKey,
    content: { body: work.body, tenant: work.call.tenant.id },
  });
  if ('result' in begun) {
    work.reply.header('idempotent-replayed', 'true');
    return work.replay(begun.result);
  }
  try {
    return await work.run(begun.claim);
  } catch (error) {
    // Releasing removes only what is unbound, so a call that made something and then failed keeps its key.
    if (!hasCode(error, 'idempotency.overtaken')) await idempotency.release(begun.claim).catch(() => {});
    throw error;
  }
}

function readKey(request: FastifyRequest): string | null {
  const given = request.headers['idempotency-key'];
  if (given === undefined) return null;
  // Some clients send it as a structured-field string, in quotes.
  const key = String(given).replace(/^"(.*)"$/, '$1');
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new HttpError(400, {
    code: 'bad_request',
    reason: 'invalid_header',
    message: 'Idempotency-Key must be 1 to 255 visible characters, such as a UUID.',
  });
}
