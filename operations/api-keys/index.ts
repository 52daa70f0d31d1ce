/**
 * Customers' API keys: minting, revoking, and telling whether a presented one may act.
 *
 * A verdict is asked of the database for every call and never cached, so a revoked key, a removed member or a narrowed
 * grant counts from the next call on (API-2.1.g, API-2.1.5). Calls that arrive together share one look-up.
 */
import type pg from 'pg';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type Actor, type CustomerActor, requireStaff } from '#operations/accounts/index.ts';
import {
  findKeys,
  type KeyRow,
  type KeySummary,
  listKeys,
  listKeysBelow,
} from '#operations/views/key-store.ts';
import { createLookup, type Queryable } from '#service-kit/postgres/index.ts';
import { activeKeysMax, issueKey, narrowKey, revokeKey, revokeKeysNamed, rotateKey } from './change-keys.ts';
import type { IssueKeyInput } from './store.ts';
import * as store from './store.ts';
import { actorOf, type Principal, verifyKey } from './verify-key.ts';

export { revokeKeysOf } from './change-keys.ts';
export type { KeyFacts } from './store.ts';
export { actorOf, type Principal } from './verify-key.ts';

export type ApiKeys = ReturnType<typeof createApiKeys>;

export function createApiKeys(deps: {
  db: () => Queryable;
  pool: () => pg.Pool;
  reporter: Reporter;
  /** Name of the payment gateway. */
  gateway: string;
}) {
  const lookup = createLookup<string, KeyRow>(async (keyIds) => {
    const rows = await findKeys(deps.pool(), keyIds, deps.gateway);
    return new Map(rows.map((row) => [row.keyId, row]));
  });
  return {
    /** The principal of a token, or null for every reason to refuse it (API-5.2). */
    verifyKey: (token: string) => verifyKey(lookup, token),
    /** The actor of a key that may act now; null for any other. */
    async findActor(keyId: string): Promise<CustomerActor | null> {
      const row = await lookup(keyId);
      return row?.isLive ? actorOf(row) : null;
    },
    /** What a key is told about itself; null when it is gone. */
    factsOf: (principal: Principal) => store.findFacts(deps.db(), principal.keyId),
    /** Notes the use of a key, at most once a minute; call it after the answer. Never rejects. */
    async noteUse(principal: Principal) {
      if (!principal.isUseStale) return;
      try {
        await store.noteUse(deps.db(), principal.keyId);
      } catch (error) {
        deps.reporter.warn('use of a key was not noted', { error: describeError(error) });
      }
    },
    /**
     * The organization's owner, a key of theirs, or the program. Throws `api_keys.limit`, `api_keys.owner_only`,
     * `api_keys.invalid`.
     */
    issueKey: (actor: Actor, input: IssueKeyInput) => issueKey(deps.db(), actor, input),
    /**
     * A new key in the place of one of the actor's own, which expires a day later. Throws `api_keys.not_found`,
     * `api_keys.limit`, `accounts.forbidden`.
     */
    rotateKey: (actor: CustomerActor, keyId: string) => rotateKey(deps.db(), actor, keyId),
    /** The person's own keys and those of the organizations they own, active ones first, then newest. Never a token. */
    listKeys: (actor: CustomerActor) => listKeys(deps.db(), actor.personId, actor.ownedOrganizationIds),
    /** The keys of a workspace that a calling key sees: none that may do more than itself. */
    listKeysBelow: async (actor: CustomerActor, tenantId: number): Promise<KeySummary[]> =>
      actor.keyId === null
        ? []
        : listKeysBelow(deps.db(), { keyId: actor.keyId, tenantIds: actor.tenantIds }, tenantId),
    /** All keys of an organization, for staff. */
    async listKeysOf(actor: Actor, organizationId: number): Promise<KeySummary[]> {
      requireStaff(actor);
      // No person has id 0, so the result has the organization's keys only.
      return listKeys(deps.db(), 0, [organizationId]);
    },
    /** How many of a person's keys act now, and how many may. */
    countActive: async (personId: number) => ({
      max: activeKeysMax,
      used: await store.countActive(deps.db(), personId),
    }),
    /**
     * Leaves a key those of its workspaces that are named, never more than it had; false when the actor has no such active
     * key. A key without a workspace authenticates no caller.
     */
    narrowKey: (actor: Actor, keyId: string, tenantIds: readonly number[]) =>
      narrowKey(deps.db(), actor, keyId, tenantIds),
    /** False when the actor has no such active key; `tenantId`: the workspace in which a calling key sees it. */
    revokeKey: (actor: Actor, keyId: string, tenantId?: number) =>
      revokeKey(deps.db(), actor, keyId, tenantId),
    /** Revokes a person's keys of this name; returns how many. The program only. */
    revokeKeysNamed: (actor: Actor, personId: number, name: string) =>
      revokeKeysNamed(deps.db(), actor, personId, name),
  };
}
