import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startMonitorServer } from '#monitor/testing/server.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password } from '#operations/testing/create-world.ts';
import { askAs } from '#service-kit/http/testing/ask-as.ts';
import { catchMail } from '#service-kit/mail/caught-mail.ts';

const path = '/dev/mail/';
const subject = 'Set your password for svc';
const mail = { at: new Date(0).toISOString(), to: 'olga@monitor.test', subject, text: 'Hello.' };

/** The status for this cookie, on loopback where nothing else is said; the mail is shown with 200 alone. */
async function look(
  url: string,
  cookie: string,
  { host = new URL(url).host, from }: { host?: string; from?: string } = {},
): Promise<number> {
  const headers = { cookie, accept: 'text/html', ...(from ? { 'x-forwarded-for': from } : {}) };
  const { status, text } = await askAs(host, url + path, { headers });
  assert.equal(text.includes(subject), status === 200, `the mail with ${status}`);
  return status;
}

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-mail-'));
  await catchMail(folder, mail);
  return folder;
}

test('mails that the demo of operations caught are shown only to operators at this machine', async () => {
  const mailFolder = await makeFolder();
  await using world = await createWorld({ demoWorld: true, mailFolder, trustedProxies: ['127.0.0.1'] });
  const staff = async (staffRole: 'operator' | 'support') => {
    const email = `${staffRole}@staff.test`;
    await world.accounts.createPerson(systemActor, { email, name: staffRole, password, staffRole });
    return world.signIn(email);
  };
  const { email } = await world.createCustomer('Curious');
  const operator = await staff('operator');
  assert.equal(await look(world.url, operator), 200);
  assert.equal(await look(world.url, operator, { host: 'localhost:8080' }), 200);
  assert.equal(await look(world.url, ''), 303, 'a stranger signs in first');
  assert.equal(await look(world.url, await world.signIn(email)), 404, 'a customer');
  assert.equal(await look(world.url, await staff('support')), 403, 'support, who could become an operator');
  assert.equal(await look(world.url, operator, { host: 'evil.example' }), 421);
  assert.equal(await look(world.url, operator, { host: '10.20.30.40:8080' }), 403, 'through a proxy');
  assert.equal(await look(world.url, operator, { from: '192.0.2.7' }), 403, 'from another machine');
  await rm(mailFolder, { recursive: true, force: true });
});

test('mails that the demo of the monitor caught are shown only to operators at this machine', async () => {
  const folder = await makeFolder();
  await using server = await startMonitorServer({ SVC_DEMO_WORLD: '1', SVC_MAIL_FOLDER: folder });
  const { cookie } = await server.signIn('operator');
  assert.equal(await look(server.url, cookie), 200);
  assert.equal(await look(server.url, ''), 303);
  assert.equal(await look(server.url, (await server.signIn('viewer')).cookie), 403);
  assert.equal(await look(server.url, cookie, { host: 'evil.example' }), 421);
  assert.equal(await look(server.url, cookie, { host: '10.20.30.40:8090' }), 403);
  await using usual = await startMonitorServer({ SVC_MAIL_FOLDER: folder });
  assert.equal(await look(usual.url, (await usual.signIn('operator')).cookie), 404, 'outside of a demo');
  await rm(folder, { recursive: true, force: true });
});
