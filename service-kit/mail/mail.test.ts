/** Mails, sent and caught. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
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
