import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { silentReporter } from '#common/reporter/index.ts';
import { createHttpServer } from './index.ts';
import { acceptsGzip } from './negotiate.ts';

const page = `<!doctype html>${'<p>über</p>'.repeat(500)}`;

async function makeServer() {
  const { app } = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'SVC_X_PORT',
    reporter: silentReporter,
    routes(app) {
      const html = 'text/html; charset=utf-8';
      app.get('/page', async (_request, reply) => reply.type(html).send(page));
      app.get('/short', async (_request, reply) => reply.type(html).send('<p>short</p>'));
      app.get('/file', async (_request, reply) => reply.type('text/csv').send('a,b\r\n'.repeat(1000)));
    },
  });
  return app;
}

test('a page is sent as gzip to who takes it, and is the same page', async () => {
  const app = await makeServer();
  const answer = await app.inject({ url: '/page', headers: { 'accept-encoding': 'br, gzip;q=0.5' } });
  assert.equal(answer.headers['content-encoding'], 'gzip');
  assert.equal(answer.headers.vary, 'accept-encoding');
  assert.equal(Number(answer.headers['content-length']), answer.rawPayload.length);
  assert.ok(answer.rawPayload.length < page.length / 10);
  assert.equal(gunzipSync(answer.rawPayload).toString(), page);
});

test('who does not take gzip, short pages and files get them as they are', async () => {
  const app = await makeServer();
  const plain = await app.inject({ url: '/page' });
  assert.equal(plain.headers['content-encoding'], undefined);
  assert.equal(plain.headers.vary, 'accept-encoding', 'a cache must know that there are two');
  assert.equal(plain.body, page);
  for (const url of ['/short', '/file']) {
    const answer = await app.inject({ url, headers: { 'accept-encoding': 'gzip' } });
    assert.equal(answer.headers['content-encoding'], undefined, url);
  }
});

test('HEAD tells of the same answer without its body', async () => {
  const app = await makeServer();
  const headers = { 'accept-encoding': 'gzip' };
  const [get, head] = await Promise.all([
    app.inject({ url: '/page', headers }),
    app.inject({ url: '/page', headers, method: 'HEAD' }),
  ]);
  assert.equal(head.rawPayload.length, 0);
  assert.equal(head.headers['content-length'], get.headers['content-length']);
});

test('a weight of zero refuses gzip', () => {
  for (const header of ['gzip', 'GZIP', 'br, gzip', '*', 'gzip;q=0.1', 'identity;q=0, *']) {
    assert.equal(acceptsGzip(header), true, header);
  }
  for (const header of [undefined, '', 'br', 'gzip;q=0', 'gzip; q=0.0, *', '*;q=0', 'xgzip']) {
    assert.equal(acceptsGzip(header), false, String(header));
  }
});
