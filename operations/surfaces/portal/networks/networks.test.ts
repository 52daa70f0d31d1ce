import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createWorld, type World } from '#operations/testing/dated-world.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

async function visitor(name: string) {
  const customer = await world.createCustomer(name);
  const cookie = await world.signIn(customer.email);
  const get = (path: string) =>
    fetch(`${world.url}${path}`, { headers: { accept: 'text/html', cookie }, redirect: 'manual' });
  const text = async (path: string) => {
    const answer = await get(path);
    assert.equal(answer.status, 200, path);
    return answer.text();
  };
  const token = /name="csrf_token" value="([^"]+)"/.exec(await text('/client/networks/'))![1]!;
  const post = async (path: string, fields: Record<string, string | number>, csrf = token) => {
    const body = new URLSearchParams({ csrf_token: csrf });
    for (const [field, value] of Object.entries(fields)) body.set(field, String(value));
    const headers = { accept: 'text/html', cookie };
    const answer = await fetch(`${world.url}${path}`, { method: 'POST', headers, body, redirect: 'manual' });
    return { status: answer.status, to: answer.headers.get('location') ?? '', text: await answer.text() };
  };
  return { ...customer, get, text, post };
}

test('API-1.2, API-4.7: the portal’s pages create, attach, detach and delete by the rules that the API has', async () => {
  const { text, post, tenant } = await visitor('Pages');
  assert.match(await text('/client/networks/'), /No private networks yet/);
  const wrong = await post('/client/networks/', { name: 'backend', cidr: '8.8.8.0/24' });
  assert.equal(wrong.status, 422);
  assert.match(wrong.text, /field-error[\s\S]*can&#39;t be a private network/);
  assert.match(wrong.text, /value="8\.8\.8\.0\/24"/);
  const made = await post('/client/networks/', { name: 'backend', cidr: '10.20.0.0/29' });
  assert.equal(made.status, 303);
  const path = made.to.split('?')[0]!;
  assert.match(await text(made.to), /The network was created\./);
  assert.match(await text(path), /No server is on this network yet/);
  const { serverId } = await world.deploy(tenant, 'web-1');
  const page = await text(path);
  assert.match(page, new RegExp(`<option value="${serverId}">web-1</option>`));
  const refused = await post(`${path}/attach`, { server: serverId, ip: '10.20.0.1' });
  assert.equal(refused.status, 422);
  assert.match(refused.text, /field-error[\s\S]*Must be an address that servers may have/);
  assert.equal((await post(`${path}/attach`, { server: serverId, ip: '' })).status, 303);
  await world.jobs.drain();
  const attached = await text(path);
  assert.match(attached, /1 of 1 servers attached\./);
  assert.match(attached, /<code>10\.20\.0\.2<\/code>/);
  const server = await text(`/client/servers/${serverId}/networks`);
  assert.match(server, /1 of 1 private network attached\./);
  const inUse = await post(`${path}/delete`, { confirm_name: 'backend' });
  assert.equal(inUse.status, 409);
  assert.match(inUse.text, /still has 1 attached server/);
  for (const wrong of [
    { name: 'd\u202eb', description: '' },
    { name: 'db', description: 'for the \u0007 database' },
  ]) {
    const refused = await post(path, wrong);
    assert.equal(refused.status, 422, JSON.stringify(wrong));
    assert.match(refused.text, /(field|form)-error/);
  }
  assert.match(await text(path), /backend/, 'what is refused changes nothing');
  assert.equal((await post(`${path}`, { name: 'db', description: 'for the database' })).status, 303);
  assert.equal((await post(`${path}/sync`, {})).status, 303);
  const networkId = path.split('/').at(-1)!;
  assert.equal(
    (await post(`/client/servers/${serverId}/networks/detach`, { network: networkId })).status,
    303,
  );
  await world.jobs.drain();
  assert.equal((await post(`${path}/delete`, { confirm_name: 'backend' })).status, 422);
  const deleted = await post(`${path}/delete`, { confirm_name: 'db' });
  assert.equal(deleted.to, '/client/networks/?done=deleted');
  assert.match(await text(deleted.to), /The network was deleted\./);
});

test('API-4.3: another customer’s network is, byte for byte, a page that does not exist', async () => {
  const [mine, theirs] = [await visitor('Page mine'), await visitor('Page theirs')];
  const made = await theirs.post('/client/networks/', { name: 'theirs', cidr: '' });
  const path = made.to.split('?')[0]!;
  const nowhere = '/client/networks/999999';
  const body = async (address: string) =>
    (await (await mine.get(address)).text()).replaceAll(/req_[0-9A-Z]{26}/g, 'ID');
  assert.equal((await mine.get(path)).status, 404);
  assert.equal(await body(path), await body(nowhere));
  for (const action of ['', '/sync', '/attach', '/detach', '/delete'])
    assert.equal(
      (await mine.post(`${path}${action}`, { name: 'x', server: 1, confirm_name: 'theirs' })).status,
      404,
    );
  assert.equal((await theirs.post(`${path}/sync`, {}, 'forged')).status, 403);
});

test('API-4.9: the firewall’s page changes one thing at a time, of the version that it showed', async () => {
  const { text, post, tenant } = await visitor('Wall page');
  const { serverId } = await world.deploy(tenant, 'web-1');
  const path = `/client/servers/${serverId}/firewall`;
  assert.match(await text(path), /Switched off: all traffic passes\./);
  const rule = {
    direction: 'inbound',
    action: 'accept',
    protocol: 'tcp',
    ports: '443',
    peers: '',
    description: 'https',
  };
  const wrong = await post(`${path}/add`, { ...rule, version: 0, peers: '10.0.0.1/8' });
  assert.equal(wrong.status, 422);
  assert.match(wrong.text, /field-error[\s\S]*no block such as/);
  assert.equal((await post(`${path}/add`, { ...rule, version: 0 })).status, 303);
  const stale = await post(`${path}/switch`, { version: 0, enabled: 'yes' });
  assert.equal(stale.status, 409);
  assert.match(stale.text, /Another person has changed this firewall/);
  assert.equal((await post(`${path}/switch`, { version: 1, enabled: 'yes' })).status, 303);
  assert.equal(
    (await post(`${path}/policies`, { version: 2, inbound: 'drop', outbound: 'accept' })).status,
    303,
  );
  await world.jobs.drain();
  const page = await text(path);
  assert.match(page, /Filtering by 1 rule, applied/);
  assert.match(page, /Default action: drop\./);
  assert.equal((await post(`${path}/add`, { ...rule, ports: '443', version: 3 })).status, 303);
  await world.jobs.drain();
  assert.match(await text(path), /Filtering by 2 rules, applied/);
});

test('rules that most servers need are one click each, and those that are there are not offered', async () => {
  const { text, tenant, email } = await visitor('Presets');
  const { serverId } = await world.deploy(tenant, 'web-1');
  const path = `/client/servers/${serverId}/firewall`;
  const before = await text(path);
  for (const label of ['SSH', 'HTTP', 'HTTPS', 'Ping']) assert.match(before, new RegExp(`>Allow ${label}<`));
  const form = (/<form[^>]*>(?:(?!<\/form>).)*>Allow SSH</s.exec(before) ?? assert.fail())[0];
  const fields = Object.fromEntries(
    [...form.matchAll(/name="([^"]+)" value="([^"]*)"/g)].map(([, name, value]) => [name!, value!]),
  );
  const cookie = await world.signIn(email);
  const csrf = /name="csrf_token" value="([^"]+)"/.exec(
    await (await fetch(`${world.url}${path}`, { headers: { cookie, accept: 'text/html' } })).text(),
  )![1]!;
  const answer = await fetch(`${world.url}${path}/add`, {
    method: 'POST',
    headers: { cookie, accept: 'text/html' },
    body: new URLSearchParams({ ...fields, csrf_token: csrf }),
    redirect: 'manual',
  });
  assert.equal(answer.status, 303);
  const after = await text(path);
  assert.doesNotMatch(after, />Allow SSH</);
  assert.match(after, />22</);
});

test('API-2.6: the usage below the Traffic page says that nothing was measured, and never draws it as zero', async () => {
  const { text, tenant } = await visitor('Bandwidth page');
  const { serverId } = await world.deploy(tenant, 'web-1');
  const path = `/client/servers/${serverId}/traffic/usage`;
  const before = await text(path);
  assert.match(before, /Not measured in [A-Z][a-z]+ \d{4} yet\./);
  assert.match(before, /Out this month<\/dt><dd><span class="figure">unknown/);
  assert.match(before, /1\.00 TB included, nothing measured yet/);
  await world.database.pool.query(
    `insert into bandwidth_days values ($1, (svc_now() at time zone 'utc')::date, 'hypervisor', $2, 1500, 2500, svc_now())`,
    [serverId, tenant.id],
  );
  const after = await text(`${path}?use=month`);
  assert.match(after, /2\.50 kB out and 1\.50 kB in this month, last measured/);
  assert.match(after, /2\.50 kB of 1\.00 TB used/);
});
