import { randomBytes } from 'node:crypto';
import { type Person, systemActor, type Tenant } from '#operations/accounts/index.ts';
import { quantaPerUnit } from '#operations/billing/index.ts';
import { listGrantable } from '#operations/feeds/index.ts';
import type { Features } from '../../features.ts';
import type { DemoFile, Login } from './demo-file.ts';

const creditQuanta = 100 * quantaPerUnit;
const fullKeyName = 'Demo full';
const readKeyName = 'Demo read';

/** People, organizations, credit and keys. Existing people get new passwords, and the demo's old keys are revoked. */
export async function seedCustomers(features: Features): Promise<Omit<DemoFile, 'cluster_id'>> {
  const customer = await seedPerson(features, 'customer@demo.example', 'Casey Customer');
  const member = await seedPerson(features, 'member@demo.example', 'Morgan Member');
  const operator = await seedPerson(features, 'operator@demo.example', 'Olive Operator', 'operator');
  const support = await seedPerson(features, 'support@demo.example', 'Sam Support', 'support');
  const other = await seedPerson(features, 'other@demo.example', 'Oscar Other');
  const tenant = await seedOrganization(features, customer.person, 'Acme', 'Acme Production');
  const otherTenant = await seedOrganization(features, other.person, 'Globex', 'Globex');
  await features.accounts.addMember(systemActor, tenant.organizationId, member.person.id);
  return {
    customer: customer.login,
    customer_member: member.login,
    operator: operator.login,
    support: support.login,
    operator_id: operator.person.id,
    support_id: support.person.id,
    full_key: await seedKey(features, customer.person, tenant, 'full', fullKeyName),
    read_key: await seedKey(features, customer.person, tenant, 'read', readKeyName),
    tenant_id: tenant.id,
    other_customer: other.login,
    other_full_key: await seedKey(features, other.person, otherTenant, 'full', fullKeyName),
    other_tenant_id: otherTenant.id,
    admin_token: await seedAdminToken(features),
  };
}

async function seedPerson(
  { accounts }: Features,
  email: string,
  name: string,
  staffRole: 'operator' | 'support' | null = null,
): Promise<{ person: Person; login: Login }> {
  const password = randomBytes(8).toString('hex');
  const known = await accounts.findPersonByEmail(email);
  if (known !== null) await accounts.setPassword(systemActor, known.id, password);
  const person = known ?? (await accounts.createPerson(systemActor, { email, name, password, staffRole }));
  return { person, login: { email, password } };
}

async function seedOrganization(
  { accounts, billing }: Features,
  owner: Person,
  name: string,
  tenantName: string,
): Promise<Tenant> {
  const known = (await accounts.tenantsOfPerson(owner.id))[0];
  const tenant =
    known ?? (await accounts.createOrganization(systemActor, { name, ownerId: owner.id, tenantName })).tenant;
  await accounts.setBillingProfile(systemActor, tenant.id, {
    legalName: `${name} Inc.`,
    email: owner.email,
    country: 'US',
  });
  await billing.addDeposit(systemActor, tenant.id, {
    amountQuanta: creditQuanta,
    reference: 'demo-world',
    description: 'Deposit of the demo world',
  });
  return tenant;
}

async function seedKey(
  { apiKeys }: Features,
  person: Person,
  tenant: Tenant,
  scope: 'read' | 'full',
  name: string,
): Promise<string> {
  await apiKeys.revokeKeysNamed(systemActor, person.id, name);
  const issued = await apiKeys.issueKey(systemActor, {
    organizationId: tenant.organizationId,
    personId: person.id,
    name,
    scope,
    tenantIds: null,
  });
  return issued.token;
}

/** One valid token of the monitor's project. */
async function seedAdminToken(features: Features): Promise<string> {
  const { adminProjects } = features;
  const projectId = await seedProject(features);
  for (const token of await adminProjects.listTokens(systemActor, projectId))
    await adminProjects.revokeToken(systemActor, projectId, token.id);
  return (await adminProjects.issueToken(systemActor, projectId, null)).token;
}

/**
 * The monitor's project, with every permission that operations has an endpoint for; one of an earlier version has fewer.
 * Returns its id.
 */
export async function seedProject({ adminProjects, receivers }: Features): Promise<number> {
  const name = 'Demo monitor';
  const permissions = listGrantable(receivers).map(({ permission }) => permission);
  const wanted = { name, permissions, clusterIds: null };
  const known = (await adminProjects.list(systemActor)).find((project) => project.name === name);
  if (!known) return (await adminProjects.create(systemActor, wanted)).id;
  const isWhole = permissions.every((permission) => known.permissions.includes(permission));
  if (!isWhole) await adminProjects.update(systemActor, known.id, wanted);
  return known.id;
}
