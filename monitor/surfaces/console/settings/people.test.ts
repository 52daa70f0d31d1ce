import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import { startMonitorServer, testPassword } from '#monitor/testing/server.ts';

test('operators add people, change roles and end access; NET-5.5 holds for read-only people', async () => {
  await using server = await startMonitorServer();
  const { operators } = server.monitor;
  const operator = await server.signIn('operator');
  const signIn = async (email: string, password: string) => {
    const body = new URLSearchParams({ email, password });
    const answer = await fetch(`${server.url}/sign-in`, { method: 'POST', redirect: 'manual', body });
    return { status: answer.status, cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '' };
  };
  const setPassword = (path: string, given: string) => {
    const body = new URLSearchParams({ password: given });
    return fetch(`${server.url}${path}`, { method: 'POST', redirect: 'manual', body });
  };
  const linkIn = (text: string) => /\/set-password\/[A-Za-z0-9_-]{43}/.exec(text)?.[0];
  const rooms = (cookie: string) =>
    fetch(`${server.url}/settings`, { headers: { cookie }, redirect: 'manual' });

  const made = await operator.post('/settings/people', {
    email: 'ann@example.org',
    name: 'Ann',
    role: 'operator',
  });
  assert.equal(made.status, 200);
  assert.equal(made.headers.get('cache-control'), 'no-store');
  const link = linkIn(made.text);
  assert.ok(link, 'without a mail server the link is shown once');
  assert.doesNotMatch((await operator.get('/settings')).text, /set-password/);
  const password = 'chosen by herself';
  assert.equal((await signIn('ann@example.org', password)).status, 401);
  assert.equal((await setPassword(link, 'short')).status, 422);
  assert.equal((await setPassword(link, password)).status, 303);
  assert.equal((await setPassword(link, 'chosen once more')).status, 404, 'it works once');
  const twice = await operator.post('/settings/people', { email: 'ANN@example.org', role: 'viewer' });
  assert.equal(twice.status, 422);
  assert.match(twice.text, /exists already/);

  const ann = (await operators.list()).find((person) => person.email === 'ann@example.org')!;
  const session = await signIn('ann@example.org', password);
  assert.equal(session.status, 303);
  assert.equal((await operator.post(`/settings/people/${ann.id}`, { role: 'viewer' })).status, 303);
  assert.equal((await operators.find(ann.id))?.role, 'viewer');
  assert.match(await (await rooms(session.cookie)).text(), /read-only/);

  const reset = await operator.post(`/settings/people/${ann.id}/link`);
  assert.equal(reset.status, 200);
  const second = 'chosen a second time';
  assert.equal((await setPassword(linkIn(reset.text)!, second)).status, 303);
  assert.equal((await rooms(session.cookie)).status, 303, 'the old session is over');
  assert.equal((await signIn('ann@example.org', password)).status, 401);
  const again = await signIn('ann@example.org', second);
  assert.equal(again.status, 303);
  assert.equal((await operator.post(`/settings/people/${ann.id}`, { access: 'ended' })).status, 303);
  assert.equal((await rooms(again.cookie)).status, 303, 'a person whose access ended is signed out at once');
  assert.equal((await signIn('ann@example.org', second)).status, 401);
  assert.equal((await operator.post(`/settings/people/${ann.id}`, { access: 'given' })).status, 303);
  assert.equal((await rooms(again.cookie)).status, 303, 'the old session stays ended');
  assert.equal((await signIn('ann@example.org', second)).status, 303);
});

test('operators can not end their own access, and of two who end each other’s access at once one stays', async () => {
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

test('people change their own password with the present one, which ends their other sessions', async () => {
  await using server = await startMonitorServer();
  const here = await server.signIn('viewer');
  const elsewhere = await server.signIn('viewer');
  const change = (current: string, next: string) => here.post('/account/password', { current, next });
  assert.match((await change('wrong', 'another long password')).text, /The current password is not right/);
  assert.match((await change(testPassword, 'short')).text, /12 to 200 characters/);
  assert.equal((await change(testPassword, 'another long password')).status, 303);
  assert.equal((await here.get('/settings')).status, 200);
  assert.equal((await elsewhere.get('/settings')).status, 303);
  const { email } = (await server.monitor.operators.list())[0]!;
  assert.equal(await server.monitor.operators.checkPassword(email, testPassword), null);
  for (let i = 0; i < 20; i += 1) await change('wrong', 'another long password');
  const locked = await change('another long password', 'a third long password');
  assert.match(locked.text, /Too many failed attempts/, 'guesses from a stolen session are limited');
});

test('a text that the database would fold to an operator’s email matches no person, so there is one count of failures', async () => {
  await using server = await startMonitorServer();
  await server.signIn('operator');
  const { checkPassword } = server.monitor.operators;
  const upper = 'OPERATOR@MONITOR.EXAMPLE';
  assert.ok(await checkPassword(upper, testPassword));
  const dotted = ['mon\u0130tor', '\u0130'].map((part) =>
    upper.replace(part === '\u0130' ? 'I' : 'MONITOR', part),
  );
  for (const email of dotted) assert.equal(await checkPassword(email, testPassword), null, email);
});

test('a person sees their sessions with browser and address, ends one, and all others', async () => {
  await using server = await startMonitorServer();
  const here = await server.signIn('viewer');
  const signIn = async (userAgent: string) => {
    const body = new URLSearchParams({ email: 'viewer@monitor.example', password: testPassword });
    const headers = { 'user-agent': userAgent };
    const answer = await fetch(`${server.url}/sign-in`, {
      method: 'POST',
      redirect: 'manual',
      body,
      headers,
    });
    return answer.headers.getSetCookie()[0]!.split(';')[0]!;
  };
  const phone = await signIn('Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Version/18.0 Mobile Safari/604.1');
  const laptop = await signIn('Mozilla/5.0 (Macintosh) Chrome/140.0.0.0 Safari/537.36');
  const isIn = async (cookie: string) =>
    (await fetch(`${server.url}/account/`, { headers: { cookie }, redirect: 'manual' })).status === 200;
  const page = (await here.get('/account/')).text;
  assert.match(page, /You are signed in in 2 other browsers/);
  const row = page.split('<tr').find((each) => each.includes('Safari on iOS'))!;
  assert.match(row, /127\.0\.0\.1/);
  const session = /name="session" value="([^"]+)"/.exec(row)![1]!;
  assert.equal((await here.post('/account/sessions/end', { session })).status, 303);
  assert.deepEqual([await isIn(phone), await isIn(laptop)], [false, true]);
  assert.equal((await here.post('/account/sessions/end', { session })).status, 404);
  await here.post('/account/sessions/end-others');
  assert.deepEqual([await isIn(laptop), await isIn(here.cookie)], [false, true]);
});

test('an operator removes the second factors of a person who has lost them: their sessions end, a password is enough', async () => {
  await using server = await startMonitorServer();
  const { operators, factors } = server.monitor;
  const operator = await server.signIn('operator');
  const viewer = await server.signIn('viewer');
  const people = await operators.list();
  const lost = people.find((person) => person.role === 'viewer')!;
  const self = people.find((person) => person.role === 'operator')!;
  const addApp = async (id: number, email: string) => {
    const { secret } = (await factors.beginTotp(id, email))!;
    const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
    assert.ok((await factors.confirmTotp(id, code))?.codes);
  };
  await addApp(lost.id, lost.email);
  await addApp(self.id, self.email);
  const signIn = () =>
    fetch(`${server.url}/sign-in`, {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams({ email: lost.email, password: testPassword }),
    });
  assert.match((await signIn()).headers.get('location') ?? '', /sign-in/, 'asked for the second factor');
  const path = `/settings/people/${lost.id}/factors`;
  assert.equal((await viewer.post(path)).status, 403, 'a viewer removes none');
  assert.equal((await factors.stateOf(lost.id)).hasAny, true);
  const own = await operator.post(`/settings/people/${self.id}/factors`);
  assert.match(own.text, /on the page of your account/);
  assert.equal((await operator.post('/settings/people/999999/factors')).status, 404);
  assert.equal((await operator.post(path)).status, 303);
  const { hasAny, recoveryCodesLeft } = await factors.stateOf(lost.id);
  assert.deepEqual([hasAny, recoveryCodesLeft], [false, 0]);
  assert.equal((await factors.stateOf(self.id)).hasAny, true, 'their factors alone are removed');
  assert.equal((await viewer.get('/settings')).status, 303, 'the sessions are over');
  const again = await signIn();
  assert.doesNotMatch(again.headers.get('location') ?? '', /sign-in/);
  const { rows } = await server.database.pool.query(
    "select subject_id from audit_entries where operation = 'operator.remove_second_factors'",
  );
  assert.deepEqual(rows, [{ subject_id: String(lost.id) }]);
});
