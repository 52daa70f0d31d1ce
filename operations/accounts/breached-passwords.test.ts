import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createAccessLink } from '#service-kit/access-links/index.ts';
import { createPost } from '#service-kit/mail/index.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import '#service-kit/sessions/testing/cheap-passwords.ts';
import { createAccounts, systemActor } from './index.ts';

const leaked = 'granite-ocelot-ladder-91';

test('a leaked password is refused wherever a person sets one: made, changed, reset by a link', async () => {
  await using database = await createTestDatabase('operations');
  const db = () => database.db;
  const post = createPost({
    smtp: null,
    folder: null,
    baseUrl: () => 'http://x.test',
    reporter: silentReporter,
  });
  const breached = { has: async (password: string) => password === leaked };
  const accounts = createAccounts({
    db,
    post,
    revokeKeysOf: async () => {},
    releaseKeptAddresses: async () => {},
    breached,
  });
  const isRefused = (error: Error) => hasCode(error, 'accounts.invalid') && /known leaks/.test(error.message);
  const ann = { email: 'ann@example.org', name: 'Ann' };
  await assert.rejects(accounts.createPerson(systemActor, { ...ann, password: leaked }), isRefused);
  const password = 'a password that did not leak';
  const { id } = await accounts.createPerson(systemActor, { ...ann, password, staffRole: 'operator' });
  await assert.rejects(accounts.setPassword(systemActor, id, leaked), isRefused);
  const actor = (await accounts.staffActorOf(id))!;
  await assert.rejects(accounts.changePassword(actor, { current: password, next: leaked }), isRefused);
  const secret = await createAccessLink(database.db, id, 1);
  const origin = { address: '192.0.2.1', requestId: 'req_x' };
  await assert.rejects(accounts.people.setPasswordByLink(secret, leaked, origin), isRefused);
  const next = 'another one that did not leak';
  assert.equal(
    (await accounts.people.setPasswordByLink(secret, next, origin))?.id,
    id,
    'the link still works',
  );
});
