import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { visit } from '#operations/testing/visit.ts';
import { type Call, createApiClient } from '../testing/client.ts';

let world: World;
let call: Call;
before(async () => {
  world = await createWorld();
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

const body = 'AAAAC3NzaC1lZDI1NTE5AAAAIIcvEZ6PfU56tmbpZIWoyu5t5wHpTWVHJabI5CqJAZxo';
const line = `ssh-ed25519 ${body} me@home`;
/** As `ssh-keygen -lf` prints it. */
const fingerprint = 'SHA256:n/zR9C/aTrCJI5h5JhLT40GKVNLsr4n4fcQsqgfVh2o';
const other =
  'ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBDjBw6hlC39lZOJyVyFHRz04JALLno+f1WRiHzEujkzFQbrhAHPVJ7eiQ42nKgQZnXU0k7vz/Iv/YgDNc1r+zno=';
const order = { plan: 'small', image: 'debian-12', location: 'fra' };

async function customerOf(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  const send = (method: string, path: string, given?: object, headers = {}) =>
    call(method, `/api/v2${path}`, { key, headers, ...(given && { body: given }) });
  const add = (keyName: string, publicKey = line) =>
    send('POST', '/ssh-keys', { name: keyName, public_key: publicKey });
  return { ...customer, key, send, add };
}

test('a key is kept as it is normalised, with the fingerprint that ssh-keygen shows', async () => {
  const { send, add } = await customerOf('Normalised');
  const made = await add('laptop', `\t no-pty  ssh-ed25519   ${body}  me@home \r\n`);
  assert.equal(made.status, 201, made.text);
  assert.deepEqual([made.body.public_key, made.body.fingerprint], [line, fingerprint]);
  assert.equal(made.headers.get('location'), `/api/v2/ssh-keys/${made.body.id}`);
  assert.deepEqual((await send('GET', `/ssh-keys/${made.body.id}`)).body, made.body);
  const listed = (await send('GET', '/ssh-keys')).body;
  assert.deepEqual([listed.ssh_keys, listed.pagination.total], [[made.body], 1]);
});

test('a private key, half of a public one, or a name that is used is refused, and nothing is kept', async () => {
  const { send, add } = await customerOf('Refused');
  for (const text of ['-----BEGIN OPENSSH PRIVATE KEY-----', line.slice(0, 60), `${line}\n${line}`]) {
    const refused = await add('bad', text);
    assert.deepEqual(
      [refused.status, refused.body.error.fields[0].path],
      [422, 'public_key'],
      JSON.stringify(text),
    );
  }
  const { id } = (await add('Laptop')).body;
  for (const [name, publicKey] of [
    ['laptop', other],
    ['desktop', `ssh-ed25519 ${body} another comment`],
  ] as const) {
    const { status, body: said } = await add(name, publicKey);
    assert.deepEqual(
      [status, said.error.reason, said.error.details],
      [409, 'ssh_key_exists', { ssh_key_id: id }],
    );
  }
  assert.equal((await send('GET', '/ssh-keys')).body.pagination.total, 1);
});

test('a repetition under an Idempotency-Key is the same key, and only one key is kept', async () => {
  const { key } = await customerOf('Repeated');
  const send = () =>
    call('POST', '/api/v2/ssh-keys', {
      key,
      body: { name: 'laptop', public_key: line },
      headers: { 'idempotency-key': 'once-and-only-once' },
    });
  const [first, again] = [await send(), await send()];
  assert.deepEqual([again.status, again.body], [201, first.body]);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
});

test('of two changes under one ETag only the first happens; what is deleted is gone', async () => {
  const { send, add } = await customerOf('Conditional');
  const { id } = (await add('laptop')).body;
  const path = `/ssh-keys/${id}`;
  const tag = { 'if-match': (await send('GET', path)).headers.get('etag')! };
  assert.equal((await send('PATCH', path, { name: 'desktop' }, tag)).body.name, 'desktop');
  for (const [method, given] of [
    ['PATCH', { name: 'tablet' }],
    ['DELETE', undefined],
  ] as const)
    assert.equal((await send(method, path, given, tag)).body.error.reason, 'etag_mismatch', method);
  const fresh = { 'if-match': (await send('GET', path)).headers.get('etag')! };
  assert.equal((await send('DELETE', path, undefined, fresh)).status, 204);
  assert.equal((await send('GET', path)).status, 404);
});

test('a server is ordered with keys by text, id and name; one of another workspace is as one that there is not', async () => {
  const [own, stranger] = [await customerOf('Orders'), await customerOf('Stranger')];
  const { id } = (await own.add('laptop')).body;
  const foreign = (await stranger.add('elsewhere', other)).body.id;
  const made = await own.send('POST', '/servers', { ...order, ssh_keys: [`${other}\n`, id, 'laptop'] });
  assert.equal(made.status, 201, made.text);
  const { rows } = await world.database.pool.query('select ssh_keys from servers where id = $1', [
    made.body.id,
  ]);
  assert.deepEqual(rows[0].ssh_keys, [other, line, line]);
  const faultsOf = async (ref: unknown) =>
    (await own.send('POST', '/servers', { ...order, ssh_keys: [id, ref], dry_run: true })).body.error.fields;
  assert.deepEqual(await faultsOf(foreign), await faultsOf(987_654_321));
  assert.deepEqual(
    (await faultsOf('elsewhere')).map((fault: { path: string }) => fault.path),
    ['ssh_keys.1'],
  );
});

test('a workspace has at most 100 keys', async () => {
  const { tenant, add } = await customerOf('Limited');
  await world.database.pool.query(
    `insert into ssh_keys (tenant_id, name, public_key, fingerprint)
     select $1, 'key ' || i, 'x', 'SHA256:' || i from generate_series(1, 99) i`,
    [tenant.id],
  );
  assert.equal((await add('the last')).status, 201);
  const { status, body: said } = await add('too many', other);
  assert.deepEqual(
    [status, said.error.reason, said.error.details],
    [422, 'limit_exceeded', { limit: 'ssh_keys', max: 100, used: 100 }],
  );
});

test('API-1.2: the portal adds, shows and deletes the same keys, offers them at deployment, and the trail names who did', async () => {
  const customer = await customerOf('Portal');
  const visitor = await visit(world, customer.email, '/client/developer/ssh-keys/');
  const path = '/client/developer/ssh-keys/';
  assert.equal((await visitor.post(path, { name: 'laptop', public_key: 'no key' })).status, 422);
  assert.equal((await visitor.post(path, { name: 'laptop', public_key: `${line}\n` })).status, 303);
  assert.ok((await visitor.page(path)).includes(fingerprint));
  const [kept] = (await customer.send('GET', '/ssh-keys')).body.ssh_keys;
  assert.equal(kept.name, 'laptop');
  assert.ok((await visitor.page('/client/servers/new')).includes('ssh_key_id'));
  const form = { ...order, name: 'with-key', ssh_key_id: String(kept.id) };
  assert.equal((await visitor.post('/client/servers/new', form)).status, 200);
  const { rows } = await world.database.pool.query(`select ssh_keys from servers where name = 'with-key'`);
  assert.deepEqual(rows, [{ ssh_keys: [line] }]);
  const remove = { key: String(kept.id), tenant: String(customer.tenant.id) };
  assert.equal((await visitor.post(`${path}delete`, remove)).status, 303);
  assert.deepEqual((await customer.send('GET', '/ssh-keys')).body.ssh_keys, []);
  const trail = await world.auditTrail.page({ scope: { tenantIds: [customer.tenant.id] } } as never, {});
  assert.deepEqual(
    trail.entries.map(({ operation }) => operation).filter((one) => one.startsWith('ssh_key')),
    ['ssh_key.delete', 'ssh_key.create'],
  );
  assert.deepEqual(await world.sshKeys.listKeys(systemActor, customer.tenant.id), []);
});
