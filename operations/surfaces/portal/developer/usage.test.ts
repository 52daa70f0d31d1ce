import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';

let world: World;
before(async () => {
  world = await createWorld({ includedPerMonth: 10 });
});
after(() => world[Symbol.asyncDispose]());

const get = (path: string, cookie: string) =>
  fetch(`${world.url}${path}`, { headers: { accept: 'text/html', cookie }, redirect: 'manual' });

async function createCaller(name: string, requests: number) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  for (let i = 0; i < requests; i += 1)
    await fetch(`${world.url}/api/v2/servers`, { headers: { authorization: `Bearer ${key}` } });
  return { ...customer, keyId: key.split('_')[1]!, cookie: await world.signIn(customer.email) };
}

test('API-8.1: the usage page says what was used, what it costs, and by which key', async () => {
  const caller = await createCaller('Busy caller', 30);
  const page = await (await get('/client/developer/usage/', caller.cookie)).text();
  assert.match(
    page,
    /20 requests above the 10 free requests in [A-Z][a-z]+ \d{4}, \$0\.0002 so far\. Requests are not blocked\./,
  );
  assert.match(page, new RegExp(`svc_${caller.keyId}_…`));
  assert.match(page, /Requests by day/);
  const keys = await (await get('/client/developer/', caller.cookie)).text();
  assert.match(keys, /<td class="kind-figure[^>]*>30<\/td>/, 'the list of keys has the count of this month');
  const csv = await get('/client/developer/usage.csv', caller.cookie);
  assert.match(csv.headers.get('content-type')!, /^text\/csv/);
  assert.match(await csv.text(), /^date,requests\r\n(\d{4}-\d\d-\d\d,0\r\n)*\d{4}-\d\d-\d\d,30\r\n$/);
});

test('another customer’s usage is, byte for byte, a page that does not exist; so are months to come and nonsense', async () => {
  const caller = await createCaller('Nosy', 1);
  const other = await createCaller('Private', 3);
  const missing = await get('/client/developer/usage/?tenant=987654321', caller.cookie);
  const wanted = await missing.text();
  assert.equal(missing.status, 404);
  for (const query of [`tenant=${other.tenant.id}`, 'period=2099-01', 'period=now', 'tenant=x']) {
    const answer = await get(`/client/developer/usage/?${query}`, caller.cookie);
    assert.deepEqual([answer.status, await answer.text()], [404, wanted], query);
  }
  const csv = await get(`/client/developer/usage.csv?tenant=${other.tenant.id}`, caller.cookie);
  assert.equal(csv.status, 404);
});

test('API-1.S6: the fleet meter shows all accounts, to operators and support only', async () => {
  const caller = await createCaller('Fleet member', 12);
  const email = 'support-meter@example.test';
  await world.accounts.createPerson(systemActor, { email, name: 'Sue', password, staffRole: 'support' });
  const page = await get('/console/billing/usage/api/', await world.signIn(email));
  assert.equal(page.status, 200);
  const text = await page.text();
  assert.match(text, /accounts? made [\d,]+ requests in \d{4}-\d\d, \d+ above their free quota/);
  assert.match(text, /Fleet member/);
  assert.doesNotMatch(text, /<form(?![^>]*sign-out)[^>]*method="post"/, 'nothing to change');
  assert.equal((await get('/console/billing/usage/api/', caller.cookie)).status, 404);
});
