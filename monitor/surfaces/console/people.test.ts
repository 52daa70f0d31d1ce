import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startMonitorServer, testPassword } from '#monitor/testing/server.ts';

test('operators let people in, change roles, end access; NET-5.5 holds for whoever they make read-only', async () => {
  await using server = await startMonitorServer();
  const { operators } = server.monitor;
  const operator = await server.signIn('operator');
  const signIn = async (email: string, password: string) => {
    const body = new URLSearchParams({ email, password });
    const answer = await fetch(`${server.url}/sign-in`, { method: 'POST', redirect: 'manual', body });
    return { status: answer.status, cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '' };
  };
  const rooms = (cookie: string) =>
    fetch(`${server.url}/settings`, { headers: { cookie }, redirect: 'manual' });

  const made = await operator.post('/settings/people', {
    email: 'ann@example.org',
    name: 'Ann',
    role: 'operator',
  });
  assert.equal(made.status, 200);
  assert.equal(made.headers.get('cache-control'), 'no-store');
  const password = /<code[^>]*>([\w-]{20})<\/code>/.exec(made.text)?.[1];
  assert.ok(password, 'the first password is shown');
  assert.doesNotMatch((await operator.get('/settings')).text, new RegExp(password));
  const twice = await operator.post('/settings/people', { email: 'ANN@example.org', role: 'viewer' });
  assert.equal(twice.status, 422);
  assert.match(twice.text, /in the list already/);

  const ann = (await operators.list()).find((person) => person.email === 'ann@example.org')!;
  const session = await signIn('ann@example.org', password);
  assert.equal(session.status, 303);
  assert.equal((await operator.post(`/settings/people/${ann.id}`, { role: 'viewer' })).status, 303);
  assert.equal((await operators.find(ann.id))?.role, 'viewer');
  assert.match(await (await rooms(session.cookie)).text(), /read-only/);

  const reset = await operator.post(`/settings/people/${ann.id}/password`);
  assert.equal(reset.status, 200);
  assert.equal((await rooms(session.cookie)).status, 303, 'the old session is over');
  assert.equal((await signIn('ann@example.org', password)).status, 401);
  const second = /<code[^>]*>([\w-]{20})<\/code>/.exec(reset.text)![1]!;
  const again = await signIn('ann@example.org', second);
  assert.equal(again.status, 303);
  assert.equal((await operator.post(`/settings/people/${ann.id}`, { access: 'ended' })).status, 303);
  assert.equal((await rooms(again.cookie)).status, 303, 'whose access ended is out at once');
  assert.equal((await signIn('ann@example.org', second)).status, 401);
  assert.equal((await operator.post(`/settings/people/${ann.id}`, { access: 'given' })).status, 303);
  assert.equal((await signIn('ann@example.org', second)).status, 303);
});

test('nobody shuts themselves out, and of two operators who end each other’s access at once one stays', async () => {
  await using server = await startMonitorServer();
  const { operators } = server.monitor;
  const operator = await server.signIn('operator');
  const own = (await operators.list())[0]!;
  const refused = await operator.post(`/settings/people/${own.id}`, { role: 'viewer' });
  assert.equal(refused.status, 422);
  assert.match(refused.text, /Another operator has to/);
  assert.equal((await operator.post('/settings/people/999', { role: 'viewer' })).status, 404);
  const { operator: other } = await operators.invite(
    { kind: 'system' },
    { email: 'b@example.org', name: 'B', role: 'operator' },
  );
  const actor = (id: number) => ({ kind: 'person', id, role: 'operator' }) as const;
  const ended = await Promise.allSettled([
    operators.change(actor(own.id), other.id, { isDisabled: true }),
    operators.change(actor(other.id), own.id, { role: 'viewer' }),
  ]);
  assert.deepEqual(ended.map((one) => one.status).sort(), ['fulfilled', 'rejected']);
  const able = (await operators.list()).filter((one) => one.role === 'operator' && one.disabledAtMs === null);
  assert.equal(able.length, 1);
});

test('everybody changes their own password with the present one, which ends their other sessions', async () => {
  await using server = await startMonitorServer();
  const here = await server.signIn('viewer');
  const elsewhere = await server.signIn('viewer');
  const change = (current: string, next: string) => here.post('/settings/password', { current, next });
  assert.match((await change('wrong', 'another long password')).text, /not your present password/);
  assert.match((await change(testPassword, 'short')).text, /at least 12 characters/);
  assert.equal((await change(testPassword, 'another long password')).status, 303);
  assert.equal((await here.get('/settings')).status, 200);
  assert.equal((await elsewhere.get('/settings')).status, 303);
  const { email } = (await server.monitor.operators.list())[0]!;
  assert.equal(await server.monitor.operators.checkPassword(email, testPassword), null);
  for (let i = 0; i < 20; i += 1) await change('wrong', 'another long password');
  const locked = await change('another long password', 'a third long password');
  assert.match(locked.text, /Too many failed attempts/, 'guessing with a borrowed session has an end');
});
