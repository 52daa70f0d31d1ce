import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';

let world: World;
let cookie: string;
before(async () => {
  world = await createWorld({ includedPerMonth: 10 });
  const email = 'support@staff.test';
  await world.accounts.createPerson(systemActor, { email, name: 'support', password, staffRole: 'support' });
  cookie = await world.signIn(email);
});
after(() => world[Symbol.asyncDispose]());

const path = '/console/billing/usage/api/';
async function read(query: string) {
  const answer = await fetch(`${world.url}${path}${query}`, { headers: { accept: 'text/html', cookie } });
  return { status: answer.status, text: await answer.text() };
}

test('API-8.1: support sees every account’s requests and whose key made them, month by month', async () => {
  const busy = await world.createCustomer('Busy');
  const calm = await world.createCustomer('Calm');
  const keys = [
    await world.createKey(busy),
    await world.createKey(busy, 'read'),
    await world.createKey(calm),
  ];
  const ids = keys.map((key) => key.split('_')[1]!);
  const call = async (key: string, times: number) => {
    for (let i = 0; i < times; i += 1) {
      const headers = { authorization: `Bearer ${key}` };
      assert.equal((await fetch(`${world.url}/api/v2/servers`, { headers })).status, 200);
    }
  };
  await call(keys[0]!, 3);
  await call(keys[1]!, 9);
  await call(keys[2]!, 2);
  const fleet = (await read('')).text;
  assert.match(fleet, /2 accounts made 14 requests in \d{4}-\d\d, 1 above their free quota/);
  assert.ok(fleet.indexOf('>Busy<') < fleet.indexOf('>Calm<'), 'most requests first');
  const byKey = (await read('?by=key')).text;
  const rowOf = (id: string) =>
    new RegExp(`svc_${id}_…[\\s\\S]*?</tr>`)
      .exec(byKey)![0]
      .replace(/<[^>]*>/g, ' ')
      .replace(/\s+/g, ' ');
  assert.match(rowOf(ids[0]!), /full key Busy .*3 21\.4 %/);
  assert.match(rowOf(ids[1]!), /read key Busy .*9 64\.3 %/);
  assert.match(rowOf(ids[2]!), /full key Calm .*2 14\.3 %/);
  const account = (await read(`accounts/${busy.tenant.id}`)).text;
  assert.match(account, /12 requests in \d{4}-\d\d, 2 above the free quota/);
  assert.ok(account.includes(`svc_${ids[1]}_`) && !account.includes(`svc_${ids[2]}_`));
  const months = await world.metering.lastMonths(systemActor, null, 12);
  assert.deepEqual([months.length, months.at(-1)!.count, months.at(-1)!.accountCount], [1, 14, 2]);
  for (const wrong of [
    '?period=2019-13',
    '?period=2099-01',
    'accounts/999',
    `accounts/${busy.tenant.id}?period=x`,
  ])
    assert.equal((await read(wrong)).status, 404, wrong);
});

test('no account is left out: those behind the first fifty stand on the next page', async () => {
  const { pool } = world.database;
  await pool.query(`insert into organizations (name) select 'Many ' || n from generate_series(1, 60) n`);
  await pool.query(`insert into tenants (organization_id, name, slug, currency, is_payer)
    select id, name, 'many-' || id, 'USD', true from organizations where name like 'Many %'`);
  await pool.query(`insert into usage_months (tenant_id, month, count)
    select id, date_trunc('month', svc_now() at time zone 'utc')::date, 1 from tenants where slug like 'many-%'`);
  const pages = [await read(''), await read('?page=2'), await read('?page=3')];
  const names = pages.map(({ text }) =>
    [...text.matchAll(/>(Many \d+|Busy|Calm)</g)].map((match) => match[1]),
  );
  assert.deepEqual(
    names.map((each) => each.length),
    [50, 12, 0],
  );
  assert.equal(new Set(names.flat()).size, 62);
  assert.match(pages[0]!.text, /50 of 62/);
  const ways = pages.map(({ text }) =>
    [...text.matchAll(/<a href="[^"?]*\?([^"]*)"[^>]*>(← Previous|Next →)</g)].map(
      ([, query, word]) => `${word} ${/page=\d/.exec(query!)?.[0] ?? 'the first'}`,
    ),
  );
  assert.deepEqual(ways.slice(0, 2), [['Next → page=2'], ['← Previous the first']]);
});

test('charts of an account begin when it did: no zero stands before', async () => {
  const fresh = await world.createCustomer('Fresh');
  const headers = { authorization: `Bearer ${await world.createKey(fresh)}` };
  assert.equal((await fetch(`${world.url}/api/v2/servers`, { headers })).status, 200);
  const today = new Date(world.clock.nowMs()).toISOString().slice(0, 10);
  const { text } = await read(`accounts/${fresh.tenant.id}`);
  const timesOf = (chart: string) => {
    const data = new RegExp(`id="${chart}-data">([^<]*)<`).exec(text)![1]!;
    const { times } = JSON.parse(data) as { times: number[] | { startMs: number; count: number } };
    return Array.isArray(times) ? [times[0], times.length] : [times.startMs, times.count];
  };
  assert.deepEqual(timesOf('requests-by-day'), [Date.parse(today), 1]);
  assert.deepEqual(timesOf('requests-by-month'), [Date.parse(`${today.slice(0, 7)}-01`), 1]);
});
