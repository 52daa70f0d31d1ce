import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReporter, silentReporter } from '#common/reporter/index.ts';
import { createHttpServer, type HttpServerOptions } from './index.ts';
import { isAcceptedHost } from './origin.ts';

const settings = { publicUrl: 'SVC_X_PUBLIC_URL', names: 'SVC_X_ACCEPTED_HOSTS' };
const hosts = {
  publicUrl: 'https://My.Example.com:8443',
  names: ['inside.example'],
  settings,
  openPaths: ['/agent/v1', '/items/:id'],
};
const options: HttpServerOptions = {
  ...{ host: '127.0.0.1', port: 0, portSetting: 'SVC_X_PORT', reporter: silentReporter, hosts },
  routes(app) {
    for (const path of ['/', '/agent/v1/plan', '/agent/v1x', '/items/:id', '/items/:id/page'])
      app.get(path, async () => 'here');
  },
};

async function start(changes: Partial<HttpServerOptions> = {}) {
  const { app } = await createHttpServer({ ...options, ...changes });
  return async (host: string, url = '/', headers: Record<string, string> = {}) =>
    (await app.inject({ url, headers: { host, ...headers } })).statusCode;
}

test('a server answers under its addresses, localhost, its public host and the names of its setting', async () => {
  const ask = await start();
  for (const host of [
    ...['127.0.0.1', '127.0.0.1:8080', '10.1.2.3:8080', '[::1]:8080', '[2001:db8::7]', 'localhost'],
    ...['LOCALHOST:8080', 'localhost.', 'my.example.com', 'MY.example.com:443', 'inside.example:8080'],
  ])
    assert.equal(await ask(host), 200, host);
  const named = await start({ host: 'Server-7' });
  assert.equal(await named('server-7:8080'), 200, 'the name that it listens on');
});

test('under every other name it answers 421, which browsers with a changed name service meet', async () => {
  const ask = await start();
  for (const host of [
    ...['evil.example', 'evil.example:8080', '127.0.0.1.evil.example', 'localhost.evil.example'],
    ...['my.example.com.evil.example', 'notmy.example.com', 'example.com', '[::1', '1.2.3', '0x7f.1'],
    ...['evil@localhost', 'localhost/', 'localhost:8080:1', 'localhost,evil.example', 'localhost evil'],
  ]) {
    assert.equal(await ask(host), 421, host);
    assert.equal(await ask(host, '/nothing'), 421, `a path without a route under ${host}`);
  }
  for (const none of [undefined, '', ' ']) assert.equal(isAcceptedHost(none, new Set(['x'])), false);
  const bare = await createHttpServer({ ...options, hosts: undefined as never });
  const of = async (host: string) => (await bare.app.inject({ url: '/', headers: { host } })).statusCode;
  assert.deepEqual([await of('evil.example'), await of('localhost')], [421, 200], 'without any rules');
});

test('paths of programs take every name, and no path that only begins like one does', async () => {
  const ask = await start();
  for (const [path, status] of [
    ...[['/agent/v1/plan', 200] as const, ['/items/7', 200] as const, ['/items/7/page', 200] as const],
    ...[['/agent/v1/nothing', 404] as const, ['/agent/v1x', 421] as const, ['/items', 421] as const],
  ])
    assert.equal(await ask('evil.example', path), status, path);
});

test('the name that a trusted proxy passes on counts too, and that of a stranger says nothing', async () => {
  const behind = await start({ trustedProxies: ['127.0.0.1'] });
  const forwarded = (host: string) => ({ 'x-forwarded-host': host });
  assert.equal(await behind('10.0.0.7:8080', '/', forwarded('my.example.com')), 200);
  assert.equal(await behind('10.0.0.7:8080', '/', forwarded('evil.example')), 421);
  assert.equal(await behind('evil.example', '/', forwarded('my.example.com')), 421);
  const direct = await start();
  assert.equal(await direct('127.0.0.1', '/', forwarded('evil.example')), 200);
  assert.equal(await direct('evil.example', '/', forwarded('my.example.com')), 421);
});

test('a refused name is told what to set, and the log names it', async () => {
  const lines: string[] = [];
  const reporter = createReporter({ program: 'test', write: (line) => lines.push(line) });
  const { app } = await createHttpServer({ ...options, reporter });
  const answer = await app.inject({ url: '/', headers: { host: 'other.example:8080' } });
  const { error } = answer.json<{ error: { code: string; message: string } }>();
  assert.equal(error.code, 'misdirected_request');
  assert.match(error.message, /Set SVC_X_PUBLIC_URL to .* or add the name to SVC_X_ACCEPTED_HOSTS\./);
  assert.match(lines.join('\n'), /host name not accepted.* {2}host=other\.example:8080/);
});
