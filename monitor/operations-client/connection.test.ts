import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { createWorld, type World } from '#monitor/testing/world.ts';
import { createOperationsClient, OperationsError } from './client.ts';
import { parseBaseUrl } from './connection.ts';
import { startOperationsStub } from './testing/operations-stub.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());
beforeEach(() => {
  world.operations.intercept = () => false;
});

const client = (timeoutMs = 60_000) =>
  createOperationsClient({ baseUrl: world.operations.url, token: world.operations.token, timeoutMs });

async function faultOf(call: Promise<unknown>): Promise<OperationsError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof OperationsError, String(error));
    return error;
  }
  assert.fail('it succeeded');
}

test('NET-4.10: for any answer of operations, the error is one of a few fixed sentences', async () => {
  const secret = 'svcadm_their_secret <script>';
  const answers: [number, string, string][] = [
    [301, '', 'redirected'],
    [307, secret, 'redirected'],
    [400, secret, 'refused'],
    [401, secret, 'unauthorized'],
    [403, `{"error":{"details":{"permission":"${secret}"}}}`, 'permission_missing'],
    [404, secret, 'refused'],
    [413, secret, 'refused'],
    [422, secret, 'refused'],
    [408, secret, 'failed'],
    [429, secret, 'failed'],
    [500, secret.repeat(50_000), 'failed'],
    [503, '', 'failed'],
    [204, '', 'malformed'],
    [200, secret, 'malformed'],
    [200, '{}', 'malformed'],
    [200, '{"project":{"id":1,"name":"x"},"capabilities":{"a":false}}', 'malformed'],
    [200, ' '.repeat(9 * 1024 * 1024), 'malformed'],
  ];
  for (const [status, body, fault] of answers) {
    world.operations.intercept = (_request, response) => {
      response.writeHead(status, status < 400 && status >= 300 ? { location: '/elsewhere' } : {}).end(body);
      return true;
    };
    const error = await faultOf(client().discover());
    assert.equal(error.fault, fault, `${status} ${body.slice(0, 20)}`);
    assert.ok(!error.message.includes('their_secret'));
    assert.equal(error.permission, null);
  }
});

test('NET-5.1: a missing permission is named if it is a known one', async () => {
  world.operations.intercept = (_request, response) => {
    const body = { error: { details: { permission: 'protect_telemetry_ingest' } } };
    response.writeHead(403).end(JSON.stringify(body));
    return true;
  };
  const error = await faultOf(client().listTargets(null, 10));
  assert.equal(error.permission, 'protect_telemetry_ingest');
  assert.match(error.message, /the token stays valid/);
});

test('a missing answer, a truncated answer and an unreachable host are distinguished, within the timeout', async () => {
  world.operations.intercept = () => true;
  assert.equal((await faultOf(client(50).discover())).fault, 'timeout');
  world.operations.intercept = (_request, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('{');
    setImmediate(() => response.destroy());
    return true;
  };
  assert.equal((await faultOf(client().discover())).fault, 'malformed');
  world.operations.intercept = (_request, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('{');
    return true;
  };
  assert.equal((await faultOf(client(50).discover())).fault, 'timeout', 'a slow drip too');
  const unreachable = createOperationsClient({
    baseUrl: 'http://127.0.0.1:1',
    token: world.operations.token,
  });
  assert.equal((await faultOf(unreachable.discover())).fault, 'unreachable');
});

test('the token is sent to the entered host only: a redirect is not followed', async () => {
  const asked: string[] = [];
  world.operations.intercept = (request, response) => {
    // A call that the previous test gave up may arrive only now, so this test has its own path.
    if (request.url!.startsWith('/here') || request.url === '/stolen') asked.push(request.url!);
    response.writeHead(302, { location: `${world.operations.url}/stolen` }).end();
    return true;
  };
  const { url, token } = world.operations;
  await faultOf(createOperationsClient({ baseUrl: `${url}/here`, token }).discover());
  assert.deepEqual(asked, ['/here/api/admin/v1/discovery/']);
});

test('NET-4.l: discovery reports the permissions of the project, and a new token clears those of the old one', async () => {
  await world.connection.check();
  const view = (await world.connection.view())!;
  assert.equal(view.projectName, 'monitor');
  assert.equal(view.capabilities.protect_telemetry_ingest, true);
  assert.equal('token' in view, false, 'the token is never shown');
  const token = world.operations.token.replace(/.$/, (last) => (last === 'A' ? 'E' : 'A'));
  await world.connection.save(systemActor, { baseUrl: world.operations.url, token, isEnabled: true });
  assert.deepEqual((await world.connection.view())!.capabilities, {});
  await faultOf(world.connection.check());
  assert.match((await world.connection.view())!.checkError!, /refused the token/);
  const settings = { baseUrl: world.operations.url, token: world.operations.token, isEnabled: true };
  await world.connection.save(systemActor, settings);
});

test('the token is sent over https or within the machine; another http address needs the setting', async () => {
  const elsewhere = { baseUrl: 'http://operations.invalid:8080', token: world.operations.token };
  const refused = await faultOf(createOperationsClient(elsewhere).discover());
  assert.equal(refused.fault, 'insecure');
  assert.match(refused.message, /https.*SVC_ALLOW_INSECURE_HTTP=1/);
  const allowed = createOperationsClient({ ...elsewhere, allowsInsecureHttp: true });
  assert.equal((await faultOf(allowed.discover())).fault, 'unreachable', 'it was tried');
  const https = createOperationsClient({ ...elsewhere, baseUrl: 'https://operations.invalid' });
  assert.equal((await faultOf(https.discover())).fault, 'unreachable');
});

test('base URLs are canonical; user names, passwords and queries are refused', () => {
  assert.equal(parseBaseUrl(' https://Operations.Example:443/ '), 'https://operations.example');
  assert.equal(parseBaseUrl('http://10.0.0.1:8080/ops//'), 'http://10.0.0.1:8080/ops');
  for (const bad of ['', 'ftp://x', 'file:///etc', 'https://a:b@x', 'https://x/?a', 'https://x/#a', 'x']) {
    assert.throws(() => parseBaseUrl(bad), /base URL/, bad);
  }
});

test('a viewer may not change the connection', async () => {
  const viewer = { kind: 'person', id: 1, role: 'viewer' } as const;
  const settings = { baseUrl: world.operations.url, token: null, isEnabled: false };
  await assert.rejects(world.connection.save(viewer, settings), /role is read-only/);
  await assert.rejects(world.connection.createNoticeSecret(viewer), /role is read-only/);
});

test('the stored token is sent only to the address it was entered for', async () => {
  const { connection } = world;
  await using thief = await startOperationsStub();
  const heard: (string | undefined)[] = [];
  thief.intercept = (request) => {
    heard.push(request.headers.authorization);
    return false;
  };
  const { url: baseUrl, token } = world.operations;
  await connection.save(systemActor, { baseUrl, token, isEnabled: true });
  const moved = { baseUrl: thief.url, token: null, isEnabled: true };
  for (const change of [connection.save, connection.testAndSave])
    await assert.rejects(change(systemActor, moved), /The stored token is for .*Enter the token again/);
  for (const other of [baseUrl.replace('http:', 'https:'), baseUrl.replace('127.0.0.1', 'localhost')])
    await assert.rejects(connection.save(systemActor, { ...moved, baseUrl: other }), /Enter the token again/);
  assert.equal((await connection.view())?.baseUrl, baseUrl);
  assert.deepEqual(heard, []);
  // Another path of the same server, and another server with the token entered again.
  await connection.save(systemActor, { baseUrl: `${baseUrl}/below`, token: null, isEnabled: true });
  await connection.testAndSave(systemActor, { ...moved, token: thief.token });
  assert.ok(heard.length > 0 && heard.every((one) => one === `Bearer ${thief.token}`));
  await connection.save(systemActor, { baseUrl, token, isEnabled: true });
});
