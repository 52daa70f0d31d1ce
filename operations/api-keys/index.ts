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
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  activeKeysMax,
  type IssueKeyResult,
  issueKey,
  narrowKey,
  revokeKey,
  revokeKeysNamed,
  rotateKey,
} from './change-keys.ts';
import type { IssueKeyInput } from './store.ts';
import * as store from './store.ts';
import { createLookup, type Principal, verifyKey } from './verify-key.ts';

export { type IssueKeyResult, revokeKeysOf } from './change-keys.ts';
export type { IssueKeyInput, KeyFacts, KeySummary, ReachableTenant } from './store.ts';
export { actorOf, createLookup, type Principal } from './verify-key.ts';

export interface ApiKeys {
  /** The principal of a token, or null for every reason to refuse it (API-5.2). */
  verifyKey(token: string): Promise<Principal | null>;
  /** What a key is told about itself; null when it is gone. */
  factsOf(principal: Principal): Promise<store.KeyFacts | null>;
  /** Notes the use of a key, at most once a minute; call it after the answer. Never rejects. */
  noteUse(principal: Principal): Promise<void>;
  /** The organization's owner, or the program. Throws `api_keys.limit`, `accounts.forbidden`, `api_keys.invalid`. */
  issueKey(actor: Actor, input: IssueKeyInput): Promise<IssueKeyResult>;
  /** The person's own keys and those of the organizations they own, active ones first, then newest. Never a token. */
  listKeys(actor: CustomerActor): Promise<store.KeySummary[]>;
  /** All keys of an organization, for staff. */
  listKeysOf(actor: Actor, organizationId: number): Promise<store.KeySummary[]>;
  /** How many of a person's keys act now, and how many may. */
  countActive(personId: number): Promise<{ max: number; used: number }>;
  /**
   * A new key in the place of one of the actor's own, which expires a day later. Throws `api_keys.not_found`,
   * `api_keys.limit`, `accounts.forbidden`.
   */
  rotateKey(actor: CustomerActor, keyId: string): Promise<IssueKeyResult>;
  /**
   * Leaves a key those of its workspaces that are named, never more than it had; false when the actor has no such active
   * key. A key without a workspace authenticates no caller.
   */
  narrowKey(actor: Actor, keyId: string, tenantIds: readonly number[]): Promise<boolean>;
  /** False when the actor has no such active key. */
  revokeKey(actor: Actor, keyId: string): Promise<boolean>;
  /** Revokes a person's keys of this name; returns how many. The program only. */
  revokeKeysNamed(actor: Actor, personId: number, name: string): Promise<number>;
}

export interface ApiKeysDeps {
  db: () => Queryable;
  pool: () => pg.Pool;
  reporter: Reporter;
}

export function createApiKeys(deps: ApiKeysDeps): ApiKeys {
  const lookup = createLookup<string, store.KeyRow>(async (keyIds) => {
    const rows = await store.findKeys(deps.pool(), keyIds);
    return new Map(rows.map((row) => [row.keyId, row]));
  });
  return {
    verifyKey: (token) => verifyKey(lookup, token),
    factsOf: (principal) => store.findFacts(deps.db(), principal.keyId),
    async noteUse(principal) {
      if (!principal.isUseStale) return;
      try {
        await store.noteUse(deps.db(), principal.keyId);
      } catch (error) {
        deps.reporter.warn('use of a key was not noted', { error: describeError(error) });
      }
    },
    issueKey: (actor, input) => issueKey(deps.db(), actor, input),
    rotateKey: (actor, keyId) => rotateKey(deps.db(), actor, keyId),
    listKeys: (actor) => store.listKeys(deps.db(), actor.personId, actor.ownedOrganizationIds),
    async listKeysOf(actor, organizationId) {
      requireStaff(actor);
      // No person has id 0, so the result has the organization's keys only.
      return store.listKeys(deps.db(), 0, [organizationId]);
    },
    countActive: async (personId) => ({
      max: activeKeysMax,
      used: await store.countActive(deps.db(), personId),
    }),
    narrowKey: (actor, keyId, tenantIds) => narrowKey(deps.db(), actor, keyId, tenantIds),
    revokeKey: (actor, keyId) => revokeKey(deps.db(), actor, keyId),
    revokeKeysNamed: (actor, personId, name) => revokeKeysNamed(deps.db(), actor, personId, name),
  };
}
