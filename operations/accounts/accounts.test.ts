// Own process: it stores passwords as the product does, and other files make them cheap.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createPost } from '#service-kit/mail/index.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';
import { type Accounts, createAccounts, systemActor } from './index.ts';

let database: TestDatabase;
let accounts: Accounts;

before(async () => {
  database = await createTestDatabase('operations');
  const post = createPost({
    smtp: null,
    folder: null,
    baseUrl: () => 'http://svc.test',
    reporter: silentReporter,
  });
  accounts = createAccounts({
    db: () => database.db,
    post,
    revokeKeysOf: async () => {},
    releaseKeptAddresses: async () => {},
  });
});
after(() => database.drop());

let people = 0;
const person = (name = 'Ada') => {
  people += 1;
  return accounts.createPerson(systemActor, {
    email: `person-${people}@example.test`,
    name,
    password: 'a long password',
  });
};

test('a person signs in with the right password only; the email is case-insensitive', async () => {
  const ada = await person();
  assert.equal((await accounts.signIn(ada.email.toUpperCase(), 'a long password'))?.id, ada.id);
  assert.equal(await accounts.signIn(ada.email, 'a wrong password'), null);
  assert.equal(await accounts.signIn('unknown@example.test', 'a long password'), null);
});

test('a deactivated person neither signs in nor acts', async () => {
  const ada = await person();
  await accounts.createOrganization(systemActor, { name: 'Left', ownerId: ada.id });
  await accounts.setPersonActive(systemActor, ada.id, false);
  assert.equal(await accounts.signIn(ada.email, 'a long password'), null);
  assert.equal(await accounts.customerActorOf(ada.id), null);
});

test('the password is stored as argon2id and is in no answer', async () => {
  const ada = await person();
  const { rows } = await database.pool.query('select password_hash from people where id = $1', [ada.id]);
  assert.match(rows[0].password_hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  assert.doesNotMatch(JSON.stringify(await accounts.findPersonByEmail(ada.email)), /\$argon2/);
});

test('two people can not have one email address', async () => {
  const ada = await person();
  await assert.rejects(
    accounts.createPerson(systemActor, { email: ada.email, name: 'Eve', password: 'quite another one' }),
    (error) => hasCode(error, 'accounts.email_taken'),
  );
});

test('a workspace’s slug does not tell that another customer has one of this name', async () => {
  const ada = await person();
  const slugs: string[] = [];
  for (let n = 0; n < 2; n += 1) {
    const made = await accounts.createOrganization(systemActor, { name: 'Twice Ltd', ownerId: ada.id });
    slugs.push(made.tenant.slug);
  }
  assert.deepEqual(slugs, ['twice-ltd', 'twice-ltd']);
});

test('the first tenant of an organization is its payer and is listed first', async () => {
  const ada = await person();
  const { organization, tenant } = await accounts.createOrganization(systemActor, {
    name: 'Payer & Co',
    ownerId: ada.id,
  });
  const second = await accounts.createTenant(systemActor, {
    organizationId: organization.id,
    name: 'Payer & Co',
  });
  assert.deepEqual([tenant.isPayer, second.isPayer], [true, false]);
  assert.deepEqual([tenant.slug, second.slug], ['payer-co', 'payer-co-2']);
  assert.deepEqual(
    (await accounts.tenantsOfPerson(ada.id)).map((each) => each.id),
    [tenant.id, second.id],
  );
});

test('a removed member reaches nothing any more, and the owner can not be removed', async () => {
  const [owner, member] = [await person('Owner'), await person('Member')];
  const { organization, tenant } = await accounts.createOrganization(systemActor, {
    name: 'Shared',
    ownerId: owner.id,
  });
  await accounts.addMember(systemActor, organization.id, member.id);
  assert.deepEqual((await accounts.customerActorOf(member.id))?.tenantIds, [tenant.id]);
  assert.deepEqual((await accounts.customerActorOf(member.id))?.ownedOrganizationIds, []);
  assert.deepEqual((await accounts.customerActorOf(owner.id))?.ownedOrganizationIds, [organization.id]);
  assert.equal(await accounts.removeMember(systemActor, organization.id, member.id), true);
  assert.deepEqual((await accounts.customerActorOf(member.id))?.tenantIds, []);
  assert.equal(await accounts.removeMember(systemActor, organization.id, owner.id), false);
});

test('support may look and not change; a customer may do neither', async () => {
  const ada = await person();
  const { tenant } = await accounts.createOrganization(systemActor, { name: 'Acme', ownerId: ada.id });
  const support = { kind: 'staff', personId: 1, role: 'support' } as const;
  const customer = (await accounts.customerActorOf(ada.id))!;
  assert.ok((await accounts.listTenants(support)).some((each) => each.id === tenant.id));
  for (const actor of [support, customer]) {
    await assert.rejects(accounts.setTenantStatus(actor, tenant.id, 'SUSPENDED'), (error) =>
      hasCode(error, 'accounts.forbidden'),
    );
  }
  await assert.rejects(accounts.listTenants(customer), (error) => hasCode(error, 'accounts.forbidden'));
});

test('a suspended tenant can be made active again, a closed one can not', async () => {
  const ada = await person();
  const { tenant } = await accounts.createOrganization(systemActor, { name: 'Status', ownerId: ada.id });
  await accounts.setTenantStatus(systemActor, tenant.id, 'SUSPENDED');
  await accounts.setTenantStatus(systemActor, tenant.id, 'ACTIVE');
  await accounts.setTenantStatus(systemActor, tenant.id, 'CLOSED');
  await assert.rejects(accounts.setTenantStatus(systemActor, tenant.id, 'ACTIVE'));
  assert.equal((await accounts.findTenant(tenant.id))?.status, 'CLOSED');
});

test('a tenant has a billing profile once its owner gave one', async () => {
  const ada = await person();
  const { tenant } = await accounts.createOrganization(systemActor, { name: 'Bills', ownerId: ada.id });
  assert.equal(tenant.hasBillingProfile, false);
  const owner = (await accounts.customerActorOf(ada.id))!;
  await accounts.setBillingProfile(owner, tenant.id, {
    legalName: 'Bills GmbH',
    email: 'Invoices@Bills.test',
    country: 'DE',
  });
  assert.equal((await accounts.findTenant(tenant.id))?.hasBillingProfile, true);
  assert.equal((await accounts.billingProfileOf(tenant.id))?.email, 'invoices@bills.test');
  const stranger = (await accounts.customerActorOf((await person()).id))!;
  await assert.rejects(
    accounts.setBillingProfile(stranger, tenant.id, { legalName: 'X', email: 'x@x.test', country: 'DE' }),
    (error) => hasCode(error, 'accounts.forbidden'),
  );
});
