/**
 * The fifteen kinds of callers of the isolation matrix, with what each is entitled to by the specification: the model that
 * the server's answers are compared with.
 */
import { type Person, systemActor, type Tenant } from '#operations/accounts/index.ts';
import type { World } from '#operations/testing/create-world.ts';
import { mintCredential } from '#service-kit/credentials/index.ts';

export interface Caller {
  name: string;
  headers: readonly (readonly [string, string])[];
  /** Whether the credential authenticates a caller. */
  isKnown: boolean;
  canWrite: boolean;
  /** Its account gate refuses it. */
  isLocked: boolean;
  /** What it reaches, the default workspace first. */
  tenants: readonly Tenant[];
}

/** Workspaces whose things callers try to reach. */
export interface Owners {
  own: Tenant;
  sibling: Tenant;
  other: Tenant;
}

/** Two organizations: one with two workspaces, and another. */
export async function createOwners(
  world: World,
): Promise<Owners & { people: Record<'own' | 'other', Person> }> {
  const first = await world.createCustomer('canary-own');
  const second = await world.createCustomer('canary-other');
  const sibling = await addTenant(world, first.tenant.organizationId, 'canary-sibling');
  return {
    own: first.tenant,
    sibling,
    other: second.tenant,
    people: { own: first.owner, other: second.owner },
  };
}

async function addTenant(world: World, organizationId: number, name: string): Promise<Tenant> {
  const tenant = await world.accounts.createTenant(systemActor, { organizationId, name });
  const profile = { legalName: name, email: `${name}@example.test`, country: 'DE' };
  await world.accounts.setBillingProfile(systemActor, tenant.id, profile);
  const deposit = { amountQuanta: 10_000_000, reference: name, description: 'Deposit' };
  await world.billing.addDeposit(systemActor, tenant.id, deposit);
  return tenant;
}

export async function createCallers(
  world: World,
  owners: Awaited<ReturnType<typeof createOwners>>,
): Promise<Caller[]> {
  const { own, sibling, other, people } = owners;
  const mine = { owner: people.own, tenant: own };
  const bearer = (token: string) => [['authorization', `Bearer ${token}`]] as const;
  const unauthenticated = (name: string, headers: Caller['headers']): Caller => ({
    name,
    headers,
    isKnown: false,
    canWrite: false,
    isLocked: false,
    tenants: [],
  });
  const key = async (
    name: string,
    customer: { owner: Person; tenant: Tenant },
    tenants: readonly Tenant[],
    options: { scope?: 'read' | 'full'; selected?: readonly Tenant[]; isLocked?: boolean } = {},
  ): Promise<Caller & { keyId: string }> => {
    const scope = options.scope ?? 'full';
    const selected = options.selected?.map((tenant) => tenant.id) ?? null;
    const token = await world.createKey(customer, scope, selected);
    const [, keyId] = token.split('_');
    const isLocked = options.isLocked ?? false;
    return {
      name,
      headers: bearer(token),
      isKnown: true,
      canWrite: scope === 'full',
      isLocked,
      tenants,
      keyId: keyId!,
    };
  };
  const locked = await world.createCustomer('canary-locked');
  await world.accounts.setTenantStatus(systemActor, locked.tenant.id, 'SUSPENDED');
  const revoked = await key('revoked', mine, []);
  await world.apiKeys.revokeKey(systemActor, revoked.keyId);
  const expired = await key('expired', mine, []);
  await world.database.pool.query(
    "update api_keys set expires_at = svc_now() - interval '1 s' where key_id = $1",
    [expired.keyId],
  );
  const narrowed = await key('narrowed to its second workspace', mine, [sibling], {
    selected: [own, sibling],
  });
  await world.database.pool.query('delete from api_key_tenants where key_id = $1 and tenant_id = $2', [
    narrowed.keyId,
    own.id,
  ]);
  const cookie = await world.signIn(people.own.email);
  return [
    unauthenticated('none', []),
    unauthenticated('session only', [['cookie', cookie]]),
    unauthenticated('malformed', [['authorization', 'Bearer svc_nonsense']]),
    unauthenticated('revoked', revoked.headers),
    unauthenticated('expired', expired.headers),
    await key('own read', mine, [own, sibling], { scope: 'read' }),
    await key('own full', mine, [own, sibling]),
    await key('other organization', { owner: people.other, tenant: other }, [other]),
    await key('selected first', mine, [own], { selected: [own] }),
    await key('selected second', mine, [sibling], { selected: [sibling] }),
    narrowed,
    unauthenticated('removed member', (await removedMember(world, own)).headers),
    await key('suspended account', locked, [locked.tenant], { isLocked: true }),
    unauthenticated('admin token', bearer(await world.createToken(['vm_inventory_read']))),
    unauthenticated('sensor credential', bearer(mintCredential('svcsen').token)),
  ];
}

async function removedMember(world: World, tenant: Tenant): Promise<Pick<Caller, 'headers'>> {
  const member = await world.createCustomer('canary-member');
  await world.accounts.addMember(systemActor, tenant.organizationId, member.owner.id);
  const token = await world.createKey({ owner: member.owner, tenant });
  await world.accounts.removeMember(systemActor, tenant.organizationId, member.owner.id);
  return { headers: [['authorization', `Bearer ${token}`]] };
}
