/**
 * Tokens with which programs read one site's traffic: read-only, with an end, shown once, stored as a digest.
 *
 * A token belongs to a site and can't be moved. An unknown, an expired and a revoked one get the same answer, in the same time.
 */
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { recorded } from '#service-kit/audit/index.ts';
import { expiryOf, mintCredential, parseCredential, secretMatches } from '#service-kit/credentials/index.ts';
import type { Limits } from '#service-kit/limits/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export type { ReadToken } from './store.ts';

/** `svcread_<id>_<secret>`. */
const prefix = 'svcread';
const nameMax = 80;

export type ReadTokens = ReturnType<typeof createReadTokens>;

export function createReadTokens(deps: {
  db: () => Queryable;
  clock: Clock;
  limits: Pick<Limits, 'createLog'>;
}) {
  const { db, clock } = deps;
  const admit = createTokenThrottle(deps.limits);
  return {
    list: (siteId: number) => store.listTokens(db(), siteId),
    /**
     * Makes a token; the text is shown once. `days` is the text of a form, blank for no end. Throws `read_tokens.invalid`.
     */
    async create(
      actor: Actor,
      siteId: number,
      input: { name: string; days: string },
    ): Promise<{ token: string; expiresAtMs: number | null }> {
      requireOperator(actor);
      const name = oneLine(input.name);
      if (name === '' || name.length > nameMax)
        throw new CodedError(
          'read_tokens.invalid',
          `Give the token a name of at most ${nameMax} characters.`,
        );
      const expiresAt = expiryOf(input.days, clock.nowMs());
      if (expiresAt === undefined)
        throw new CodedError('read_tokens.invalid', 'Give a number of days, or leave it empty for no end.');
      const minted = mintCredential(prefix);
      const createdBy = actor.kind === 'person' ? `operator ${actor.id}` : 'system';
      await recorded(
        db(),
        actor,
        {
          operation: 'read_token.create',
          subject: { kind: 'read_token', id: minted.id, name },
          after: { siteId, expiresAt },
        },
        (trx) =>
          store.insertToken(trx, {
            id: minted.id,
            digest: minted.digest,
            siteId,
            name,
            createdBy,
            expiresAt,
          }),
      );
      return { token: minted.token, expiresAtMs: expiresAt?.getTime() ?? null };
    },
    /** False: the site has no such token. */
    async revoke(actor: Actor, siteId: number, id: string): Promise<boolean> {
      requireOperator(actor);
      const revoked = await recorded<{ name: string } | null>(
        db(),
        actor,
        ({ name }) => ({
          operation: 'read_token.revoke',
          subject: { kind: 'read_token', id, name },
          before: { siteId },
        }),
        (trx) => store.revokeToken(trx, siteId, id),
      );
      return revoked !== null;
    },
    /** The site that a presented token may read; null: none. */
    async authenticate(token: string): Promise<{ id: string; siteId: number } | null> {
      const presented = parseCredential(prefix, token);
      if (!presented) return null;
      const known = await store.findToken(db(), presented.id);
      if (!secretMatches(known?.digest ?? null, presented.secret) || !known) return null;
      await store.noteUse(db(), presented.id);
      return { id: presented.id, siteId: known.siteId };
    },
    /** Counts a request of a token; call `end` when it has been answered. */
    admit,
  };
}

/** Keeps one token from using the monitor alone: requests of a minute, and requests at a time. */
export const requestsPerMinute = 120;
export const underWayMax = 4;

type Admission =
  | { isAdmitted: true; end: () => Promise<void> }
  | { isAdmitted: false; retryAfterSeconds: number; why: string };

/** Far longer than any request: those of a process that was killed end after it. */
const underWayMs = 60_000;

function createTokenThrottle(limits: Pick<Limits, 'createLog'>): (id: string) => Promise<Admission> {
  const requests = limits.createLog('read-token', { capacity: requestsPerMinute, windowMs: 60_000 });
  const underWay = limits.createLog('read-token-under-way', { capacity: underWayMax, windowMs: underWayMs });
  return async (id) => {
    const place = await underWay.take(id);
    if (!place.isAllowed)
      return {
        isAdmitted: false,
        retryAfterSeconds: 1,
        why: `This token has ${underWayMax} requests under way. Send the next one when one has ended.`,
      };
    const request = await requests.take(id);
    if (!request.isAllowed) {
      await underWay.giveBack(id, place.event);
      return {
        isAdmitted: false,
        retryAfterSeconds: request.resetSeconds,
        why: `This token made ${requestsPerMinute} requests within a minute. Ask less often, or use one query with two dimensions instead of many.`,
      };
    }
    return { isAdmitted: true, end: () => underWay.giveBack(id, place.event) };
  };
}
