/**
 * Calls that may be repeated without doing their work twice.
 *
 * A key of the caller's choosing is claimed before the work and bound to what the work made in the very transaction that
 * makes it. So a repeated call finds the thing, or finds nothing and may do the work: there is no moment in between,
 * also when a process dies. Kept for 24 hours; only what the thing is, not how it was answered.
 */
import { createHash } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import { createLeasedLoop, type LeasedLoop, type LoopDeps } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

/** One call as its repetitions look. */
export interface RepeatableCall {
  /** The API key that calls: two keys never share a name. */
  keyId: string;
  method: string;
  path: string;
  idempotencyKey: string;
  /** Everything that a repetition must have in common with the first call. */
  content: unknown;
}

/** The right to do the work of a call; `bind` ties the result to it. */
export interface Claim extends store.ClaimRow {
  /** To be called in the transaction that makes the result. Throws `idempotency.overtaken`, which undoes it. */
  bind(tx: Queryable, result: Result): Promise<void>;
}

export type Idempotency = ReturnType<typeof createIdempotency>;

/** Longer than any call takes, the charge of a card included. */
const claimSeconds = 120;

export function createIdempotency(deps: IdempotencyDeps) {
  return {
    /** What it does beside the calls. */
    work: { parts: [createIdempotencyRetention(deps)] } satisfies FeatureWork,
    /**
     * Claims a call, or says what it made already. Throws `idempotency.reused` for another content under the same key and
     * `idempotency.in_progress` while the first call is under way.
     */
    async begin({
      keyId,
      method,
      path,
      idempotencyKey,
      content,
    }: RepeatableCall): Promise<{ claim: Claim } | { result: Result }> {
      const fingerprint = createHash('sha256').update(canonicalJson(content)).digest();
      const place = { keyId, method, path, idempotencyKey };
      const claimed = await store.claim(deps.db(), place, fingerprint, claimSeconds);
      if (claimed !== null) return { claim: claimOf({ ...place, term: claimed }) };
      const known = await store.find(deps.db(), place);
      // Released or expired between the two statements: as if this call had come a moment later.
      if (known === null) throw inProgress();
      if (!known.fingerprint.equals(fingerprint))
        throw new CodedError(
          'idempotency.reused',
          'This Idempotency-Key was used for another request. Use a new one for every new request.',
        );
      if (known.result === null) throw inProgress();
      return { result: known.result };
    },
    /** Gives a claim back whose call made nothing, so that it may be repeated. */
    release: (claim: Claim) => store.release(deps.db(), claim),
  };
}

function claimOf(row: store.ClaimRow): Claim {
  return {
    ...row,
    async bind(tx, result) {
      if (await store.bind(tx, row, result)) return;
      throw new CodedError('idempotency.overtaken', 'A repetition of this call has taken it over.');
    },
  };
}

const inProgress = () =>
  new CodedError(
    'idempotency.in_progress',
    'The first call with this Idempotency-Key is still under way. Repeat this one in a moment.',
  );

/** The same text for the same content, independent of the order of its members. */
function canonicalJson(value: unknown): string {
  return (
    JSON.stringify(value, (_name, part) =>
      part !== null && typeof part === 'object' && !Array.isArray(part)
        ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
        : part,
    ) ?? ''
  );
}

/** What idempotency needs from the rest of the program. */
type IdempotencyDeps = LoopDeps;

/** The loop that forgets keys after their 24 hours. */
function createIdempotencyRetention(deps: IdempotencyDeps): LeasedLoop {
  return createLeasedLoop({
    name: 'operations.idempotency_retention',
    intervalMs: 600_000,
    ttlSeconds: 60,
    ...deps,
    async run() {
      await store.deleteExpired(deps.db());
    },
  });
}

/** What the first call made. */
export interface Result {
  kind: string;
  id: number;
}
