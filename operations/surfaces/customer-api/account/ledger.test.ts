import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { type Call, createApiClient } from '../testing/client.ts';

let world: World;
let call: Call;
before(async () => {
  world = await createWorld();
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

test('API-2.7: the ledger of the workspace is read page by page, by source and month, and adds up to the credit', async () => {
  const customer = await world.createCustomer('Ledger');
  await world.setBalance((await world.createCustomer('Another')).tenant, 77);
  for (const balance of [900_000, 850_000]) await world.setBalance(customer.tenant, balance);
  const key = await world.createKey(customer, 'read');
  const get = async (query = '') => (await call('GET', `/api/v2/ledger${query}`, { key })).body;
  const { entries, pagination } = await get();
  assert.deepEqual(
    entries.map((entry: { source: string; amount: string }) => [entry.source, entry.amount]),
    [
      ['test', '-5.00'],
      ['test', '-10.00'],
      ['deposit', '100.00'],
    ],
  );
  assert.equal(pagination.total, 3);
  const paged = [];
  for (let query: string | null = '?limit=1'; query !== null; ) {
    const page = await get(query);
    paged.push(...page.entries);
    const { next_cursor: next } = page.pagination;
    query = next === null ? null : `?limit=1&cursor=${next}`;
  }
  assert.deepEqual(paged, entries);
  const deposits = await get('?source=deposit');
  assert.deepEqual([deposits.entries, deposits.pagination.total], [[entries[2]], 1]);
  assert.deepEqual((await get('?period=2020-01')).entries, []);
  const account = (await call('GET', '/api/v2/account', { key })).body;
  assert.equal(account.credit_balance, '85.00');
  for (const query of ['cursor=x', 'cursor=bGVkZ2VyOjA'])
    assert.equal((await call('GET', `/api/v2/ledger?${query}`, { key })).status, 400, query);
  assert.equal((await call('GET', '/api/v2/ledger?period=2026-13', { key })).status, 422);
});

test('the members of the organization are listed, owners first, and none of another one', async () => {
  const [customer, other] = [await world.createCustomer('Members'), await world.createCustomer('Strangers')];
  await world.accounts.addMember(systemActor, customer.tenant.organizationId, other.owner.id);
  const key = await world.createKey(customer, 'read');
  const { members } = (await call('GET', '/api/v2/members', { key })).body;
  const told = ({ owner, email }: typeof customer, role: string) => ({
    id: owner.id,
    name: owner.name,
    email,
    role,
    active: true,
  });
  assert.deepEqual(members, [told(customer, 'owner'), told(other, 'member')]);
  const ofOther = await world.createKey(other, 'read');
  assert.deepEqual((await call('GET', '/api/v2/members', { key: ofOther })).body.members, [
    told(other, 'owner'),
  ]);
});
