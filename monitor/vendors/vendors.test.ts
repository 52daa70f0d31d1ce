import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createVendors } from './index.ts';

const { findOffline } = createVendors();

test('NET-2.1.4: a locally administered prefix is never looked up, even where the table has it', async () => {
  assert.equal(await findOffline('02:60:8c:00:00:01'), null);
  assert.equal(await findOffline('aa:00:04:00:00:01'), null);
});

test('NET-2.1.5: the bundled table names the maker by the longest prefix that it sold', async () => {
  assert.match((await findOffline('00:1b:21:00:00:01'))!, /^Intel/);
  // A 24-bit block whose owner the table calls the registry itself, with 28-bit blocks of others inside.
  const names = new Set<string | null>();
  for (const digit of '0123456789abcde') names.add(await findOffline(`70:b3:d5:${digit}0:00:01`));
  assert.ok(names.size > 1);
  assert.equal((await findOffline('00:00:5e:00:00:01')) === null, false);
});
