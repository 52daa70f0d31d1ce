/** Mails, sent and caught. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createServer } from 'node:tls';
import { silentReporter } from '#common/reporter/index.ts';
import { makeCertificates } from '#common/transport/testing/certificates.ts';
import { createPost, listCaughtMail, sendBySmtp } from './index.ts';
import { startMailServer } from './testing/start-mail-server.ts';

test('subject and text of a mail have no line breaks of a name’s own and nothing that turns the direction of writing', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-mail-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const mail = {
    subject: 'New port on \u202etxt\r\nBcc: x@evil.example',
    text: 'Hello \u2066a\u2029b\n\n  indented\n',
  };
  const subject = 'New port on  txt Bcc: x@evil.example';
  const baseUrl = () => 'http://127.0.0.1';
  const catching = createPost({ smtp: null, folder, baseUrl, reporter: silentReporter });
  assert.equal(await catching.send({ to: 'reader@mail.test', ...mail }), null);
  const [caught] = await listCaughtMail(folder);
  assert.deepEqual([caught!.subject, caught!.text], [subject, 'Hello  a b\n\nindented\n']);

  await using server = await startMailServer();
  const settings = { url: server.url, from: 'svc@mail.test' };
  assert.equal(await sendBySmtp(settings, { to: ['reader@mail.test'], id: 'one', ...mail }), null);
  const [sent] = await server.mailsTo('reader@mail.test');
  assert.deepEqual([sent!.subject, sent!.to], [subject, ['reader@mail.test']]);
  assert.match(sent!.body, /^Hello {2}a b\r\n\r\nindented/);
});

test('a mail server that can not be reached is named with the reason: refused, or a certificate of an unknown authority', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-mail-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const { key, certificate } = makeCertificates(folder);
  const server = createServer(
    { key, cert: certificate },
    (socket) => void socket.on('error', () => {}).end(),
  );
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const send = (url: string) =>
    sendBySmtp({ url, from: 'svc@mail.test' }, { to: ['a@mail.test'], id: 'one', subject: 's', text: 't' });
  assert.equal(
    await send('smtp://127.0.0.1:1'),
    'the mail server could not be reached: the connection was refused',
  );
  const { port } = server.address() as AddressInfo;
  assert.match((await send(`smtps://127.0.0.1:${port}`))!, /unknown authority; .*NODE_EXTRA_CA_CERTS/);
});
