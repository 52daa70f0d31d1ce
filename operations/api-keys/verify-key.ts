import type { CustomerActor } from '#operations/accounts/index.ts';
import type { KeyRow, ReachableTenant } from '#operations/views/key-store.ts';
import type { AccessFacts } from '#operations/views/tenant-store.ts';
import { digestSecret, parseCredential, secretMatches } from '#service-kit/credentials/index.ts';
import type { Lookup } from '#service-kit/postgres/index.ts';

/** Who acts: a key, for the person who minted it. */
export interface Principal {
  keyId: string;
  personId: number;
  organizationId: number;
  scope: 'read' | 'full';
  /** Tenants that the key may act on now: never empty, the default one (API-2.1.f) first. */
  tenants: readonly ReachableTenant[];
  /** Whether the default tenant may use the API, as it was when the key was looked up. */
  access: AccessFacts;
  /** How often the catalogue had changed then. */
  catalogVersion: number;
  /** Its last use has not been noted within a minute. */
  isUseStale: boolean;
}

/** An id that no key has: what can't be parsed is looked up like anything else, so that it takes the same time. */
const unknownId = 'unknown000000000';
/** Stands for an unknown id, so that its token goes the way of a known one; no secret has this digest. */
const unknownRow: KeyRow = {
  keyId: unknownId,
  digest: digestSecret('unknown'),
  scope: 'read',
  organizationId: 0,
  personId: 0,
  isLive: false,
  isUseStale: false,
  tenants: [],
  access: null,
  catalogVersion: 0,
};

/**
 * Decides whether a token may act, and for whom.
 *
 * One look-up by key id, then a comparison of digests in constant time (API-2.1.2). Unknown, malformed, wrong secret,
 * revoked, expired, deactivated person, removed member and no reachable tenant are one answer: null. Rejects when the
 * database does not answer; that is not a refusal and must not be shown as one.
 */
export async function verifyKey(lookup: Lookup<string, KeyRow>, token: string): Promise<Principal | null> {
  const credential = parseCredential('svc', token);
  const row = (await lookup(credential?.id ?? unknownId)) ?? unknownRow;
  const isProven = secretMatches(row.digest, credential?.secret ?? '');
  // Summed, not short-circuited: the response and its time must not reveal which check failed.
  const proofs = Number(isProven) + Number(row.isLive) + Number(row.tenants.length > 0);
  if (proofs < 3 || row.access === null) return null;
  return {
    keyId: row.keyId,
    personId: row.personId,
    organizationId: row.organizationId,
    scope: row.scope,
    tenants: row.tenants,
    access: row.access,
    catalogVersion: row.catalogVersion,
    isUseStale: row.isUseStale,
  };
}

/** The actor of a call: what a key reaches, and no more. A key owns no organization. */
export function actorOf(
  principal: Pick<Principal, 'personId' | 'keyId' | 'tenants' | 'scope'>,
): CustomerActor {
  return {
    kind: 'customer',
    personId: principal.personId,
    keyId: principal.keyId,
    tenantIds: principal.tenants.map((tenant) => tenant.id),
    ownedOrganizationIds: [],
    canWrite: principal.scope === 'full',
  };
}
