import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CodedError, hasCode } from '#common/errors/index.ts';
import type { CustomerActor } from '#operations/accounts/index.ts';
import type { FirewallChange, Rule } from '#operations/firewall/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { type Call, createApiClient } from '../testing/client.ts';

let world: World;
let call: Call;
let isBroken = false;
let isBlind = false;
before(async () => {
  world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      get capabilities() {
        return usual.capabilities.filter((one) => one !== 'firewall' || !isBlind);
      },
      implicitRules: [
        { direction: 'inbound', action: 'accept', protocol: 'any', description: 'Platform: answers' },
      ],
      async applyFirewall(guest, plan) {
        if (isBroken) throw new CodedError('hypervisor.failed', 'node-7 is on fire');
        await usual.applyFirewall(guest, plan);
      },
    }),
  });
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

const https: Rule = {
  direction: 'inbound',
  action: 'accept',
  protocol: 'tcp',
  ports: '443',
  peers: [],
  description: 'https',
};

async function customerWithServer(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer, 'read');
  const { serverId } = await world.deploy(customer.tenant, 'web-1');
  const actor = (await world.accounts.customerActorOf(customer.owner.id)) as CustomerActor;
  const read = async () => (await call('GET', `/api/v2/servers/${serverId}/firewall`, { key })).body;
  const change = async (...changes: FirewallChange[]) => {
    for (const one of changes)
      await world.firewalls.changeFirewall(actor, serverId, (await read()).version, one);
    await world.jobs.drain();
  };
  return { ...customer, key, serverId, actor, read, change };
}

test('API-4.9: a server whose firewall was never touched lets everything pass, and says so', async () => {
  const { key, serverId, read } = await customerWithServer('Untouched');
  const firewall = await read();
  assert.match(firewall.fingerprint, /^sha256:[0-9a-f]{64}$/);
  assert.deepEqual(firewall, {
    server_id: serverId,
    enabled: false,
    policies: { inbound: 'accept', outbound: 'accept' },
    status: 'applied',
    applied_at: null,
    version: 0,
    fingerprint: firewall.fingerprint,
    groups: [],
    rules: [],
    implicit_rules: [
      { direction: 'inbound', action: 'accept', protocol: 'any', description: 'Platform: answers' },
    ],
  });
  const server = (await call('GET', `/api/v1/servers/${serverId}`, { key })).body;
  assert.deepEqual(server.firewall, { enabled: false, status: 'applied', rule_count: 0 });
});

test('API-4.9: what the portal changes is read through the API, versioned, and is what the hypervisor has', async () => {
  const { key, serverId, read, change } = await customerWithServer('Changes');
  await change(
    { kind: 'switch', isEnabled: true },
    { kind: 'policies', inbound: 'drop', outbound: 'accept' },
  );
  await change({ kind: 'add', rule: https });
  await change({
    kind: 'add',
    rule: {
      ...https,
      protocol: 'udp',
      ports: '8000-9000',
      peers: ['2001:DB8::/32', '198.51.100.7'],
      description: ' games ',
    },
  });
  const firewall = await read();
  assert.deepEqual([firewall.enabled, firewall.status, firewall.version], [true, 'applied', 4]);
  assert.deepEqual(firewall.policies, { inbound: 'drop', outbound: 'accept' });
  const [first, second] = firewall.rules;
  assert.deepEqual(first, {
    id: first.id,
    position: 1,
    direction: 'inbound',
    action: 'accept',
    protocol: 'tcp',
    ports: '443',
    sources: ['0.0.0.0/0', '::/0'],
    destinations: [],
    description: 'https',
    group_id: null,
    editable: true,
  });
  assert.deepEqual(
    [second.ports, second.sources, second.description],
    ['8000-9000', ['2001:db8::/32', '198.51.100.7/32'], 'games'],
  );
  const { rows } = await world.database.pool.query('select firewall from simulated_guests where name = $1', [
    `vm-${serverId}`,
  ]);
  assert.equal(rows[0].firewall.inboundPolicy, 'drop');
  assert.deepEqual(
    rows[0].firewall.rules.map((rule: Rule) => rule.ports),
    ['443', '8000-9000'],
  );
  const server = (await call('GET', `/api/v2/servers/${serverId}`, { key })).body;
  assert.deepEqual(server.firewall, { enabled: true, status: 'applied', rule_count: 2 });
  await change({ kind: 'move', ruleId: second.id, by: -1 });
  const moved = await read();
  assert.deepEqual(
    moved.rules.map((rule: { id: number }) => rule.id),
    [second.id, first.id],
  );
  assert.notEqual(moved.fingerprint, firewall.fingerprint);
  await change({ kind: 'move', ruleId: first.id, by: -1 });
  assert.equal((await read()).fingerprint, firewall.fingerprint);
  await change({ kind: 'remove', ruleId: first.id }, { kind: 'switch', isEnabled: false });
  const off = await read();
  assert.deepEqual([off.enabled, off.rules.length, off.rules[0].position], [false, 1, 1]);
  const after = await world.database.pool.query('select firewall from simulated_guests where name = $1', [
    `vm-${serverId}`,
  ]);
  assert.equal(after.rows[0].firewall, null);
});

test('API-4.9: a rule of outbound traffic names destinations, one of inbound traffic sources', async () => {
  const { read, change } = await customerWithServer('Both ways');
  const peers = ['198.51.100.7/32'];
  await change({ kind: 'add', rule: { ...https, direction: 'outbound', peers } });
  await change({ kind: 'add', rule: { ...https, direction: 'inbound', peers } });
  const { rules } = await read();
  assert.deepEqual(
    rules.map((rule: Record<string, unknown>) => [rule.direction, rule.sources, rule.destinations]),
    [
      ['outbound', [], peers],
      ['inbound', peers, []],
    ],
  );
});

test('of two changes of one version, one is refused', async () => {
  const { actor, serverId, read } = await customerWithServer('Two editors');
  const outcomes = await Promise.allSettled(
    Array.from({ length: 4 }, () =>
      world.firewalls.changeFirewall(actor, serverId, 0, { kind: 'add', rule: https }),
    ),
  );
  assert.equal(outcomes.filter((one) => one.status === 'fulfilled').length, 1);
  assert.equal((await read()).rules.length, 1);
});

test('what can’t be a rule is refused with what to mend', async () => {
  const { actor, serverId } = await customerWithServer('Faults');
  const bad: [Partial<Rule>, string][] = [
    [{ ports: '0' }, 'ports'],
    [{ ports: '9-8' }, 'ports'],
    [{ ports: '70000' }, 'ports'],
    [{ ports: '80; drop' }, 'ports'],
    [{ protocol: 'icmp' }, 'ports'],
    [{ peers: ['10.0.0.1/8'] }, 'peers'],
    [{ peers: ['not-a-prefix'] }, 'peers'],
    [{ peers: Array(21).fill('10.0.0.0/8') }, 'peers'],
    [{ description: 'x'.repeat(81) }, 'description'],
  ];
  for (const [part, field] of bad)
    await assert.rejects(
      world.firewalls.changeFirewall(actor, serverId, 0, { kind: 'add', rule: { ...https, ...part } }),
      (error) => hasCode(error, 'firewall.invalid') && (error as CodedError).details.field === field,
      JSON.stringify(part),
    );
});

test('API-4.9: a change that the hypervisor has not got yet is pending, one that it never got is failed', async () => {
  const { read, actor, serverId } = await customerWithServer('Pending');
  isBroken = true;
  await world.firewalls.changeFirewall(actor, serverId, 0, { kind: 'add', rule: https });
  await world.jobs.drain();
  assert.equal((await read()).status, 'pending');
  for (let attempt = 0; attempt < 8; attempt += 1) {
    await world.database.pool.query('update jobs set run_at = svc_now() where finished_at is null');
    await world.jobs.drain();
  }
  assert.equal((await read()).status, 'failed');
  await world.firewalls.changeFirewall(actor, serverId, 1, { kind: 'switch', isEnabled: true });
  assert.equal((await read()).status, 'pending');
  isBroken = false;
  await world.jobs.drain();
  assert.deepEqual([(await read()).status, (await read()).enabled], ['applied', true]);
});

test('API-4.9: a hypervisor that filters nothing is never said to filter', async () => {
  const { read, actor, serverId } = await customerWithServer('Blind');
  isBlind = true;
  await assert.rejects(
    world.firewalls.changeFirewall(actor, serverId, 0, { kind: 'switch', isEnabled: true }),
    (error) => hasCode(error, 'firewall.unsupported'),
  );
  assert.equal((await read()).enabled, false);
  isBlind = false;
});

test('API-4.2: another account’s, a destroyed and a nonexistent server’s firewall are one 404', async () => {
  const [mine, theirs] = [await customerWithServer('Wall mine'), await customerWithServer('Wall theirs')];
  const full = await world.createKey(mine);
  await call('DELETE', `/api/v2/servers/${mine.serverId}`, { key: full });
  await world.jobs.drain();
  const texts = [];
  for (const id of [999_999, theirs.serverId, mine.serverId, 'x']) {
    const answer = await call('GET', `/api/v1/servers/${id}/firewall`, { key: mine.key });
    texts.push(`${answer.status} ${answer.text.replaceAll(/req_[0-9A-Z]{26}/g, 'ID')}`);
  }
  assert.equal(new Set(texts).size, 1);
  assert.match(texts[0]!, /^404/);
  await assert.rejects(
    world.firewalls.changeFirewall(mine.actor, theirs.serverId, 0, { kind: 'switch', isEnabled: true }),
    (error) => hasCode(error, 'firewall.not_found'),
  );
});

/** A customer who changes the firewall of a server through the API. */
async function writerOf(name: string) {
  const customer = await customerWithServer(name);
  const key = await world.createKey(customer);
  const path = `/api/v2/servers/${customer.serverId}/firewall`;
  const send = (method: string, below = '', body?: object, headers = {}) =>
    call(method, `${path}${below}`, { key, headers, ...(body && { body }) });
  return { ...customer, key, path, send };
}

const webRule = { direction: 'inbound', action: 'accept', protocol: 'tcp', ports: '443' };
const closedButWeb = {
  enabled: true,
  policies: { inbound: 'drop', outbound: 'accept' },
  rules: [
    { ...webRule, sources: ['0.0.0.0/0', '::/0'], description: 'https' },
    { direction: 'outbound', action: 'drop', protocol: 'udp', ports: '53', destinations: ['198.51.100.7'] },
  ],
};

test('the whole firewall is replaced as one version, which the event names; a repetition changes nothing', async () => {
  const { serverId, tenant, send, read } = await writerOf('Replaced');
  const put = await send('PUT', '', closedButWeb);
  assert.deepEqual([put.status, put.body.status, put.body.version], [202, 'pending', 1], put.text);
  await world.jobs.drain();
  const applied = await read();
  assert.deepEqual(
    applied.rules.map((rule: Record<string, unknown>) => [rule.ports, rule.sources, rule.destinations]),
    [
      ['443', ['0.0.0.0/0', '::/0'], []],
      ['53', [], ['198.51.100.7/32']],
    ],
  );
  const again = await send('PUT', '', closedButWeb);
  assert.deepEqual([again.status, again.body], [200, applied]);
  const added = { ...closedButWeb, rules: [{ ...webRule, ports: '22' }, ...closedButWeb.rules] };
  const { body } = await send('PUT', '', added);
  assert.deepEqual(
    body.rules.slice(1).map(({ id }: { id: number }) => id),
    applied.rules.map(({ id }: { id: number }) => id),
    'a rule that is there already keeps its id',
  );
  await world.jobs.drain();
  const { rows } = await world.database.pool.query(
    `select data from events where type = 'firewall.applied' and tenant_id = $1`,
    [tenant.id],
  );
  const href = `/api/v2/servers/${serverId}/firewall?tenant=${tenant.id}`;
  const told = { server_id: serverId, tenant_id: tenant.id, href };
  assert.deepEqual(rows, [{ data: told }, { data: told }], 'once for each version');
});

test('one rule is added at its place, replaced and removed; the portal sees it', async () => {
  const { serverId, tenant, actor, send, read } = await writerOf('One rule');
  await send('PUT', '', closedButWeb);
  const added = await send('POST', '/rules', { ...webRule, ports: '22', position: 1 });
  assert.deepEqual([added.status, added.body.position, added.body.ports], [201, 1, '22'], added.text);
  const of = `/rules/${added.body.id}`;
  const replaced = await send('PUT', of, { ...webRule, ports: '2222', sources: ['203.0.113.0/24'] });
  assert.deepEqual(
    [replaced.body.id, replaced.body.position, replaced.body.ports, replaced.body.sources],
    [added.body.id, 1, '2222', ['203.0.113.0/24']],
  );
  const inPortal = (await world.firewalls.readFirewall(actor, tenant.id, serverId))!;
  assert.deepEqual(
    inPortal.rules.map(({ ports }) => ports),
    ['2222', '443', '53'],
  );
  assert.equal((await send('DELETE', of)).status, 204);
  assert.equal((await send('DELETE', of)).status, 404);
  assert.equal((await send('PUT', of, webRule)).status, 404);
  assert.equal((await read()).rules.length, 2);
});

test('a rule that is added twice under an Idempotency-Key is one rule', async () => {
  const { send, read } = await writerOf('Rule once');
  const add = () => send('POST', '/rules', webRule, { 'idempotency-key': 'one-and-the-same-rule' });
  const [first, again] = [await add(), await add()];
  assert.deepEqual([first.status, again.body], [201, first.body]);
  assert.equal((await read()).rules.length, 1);
});

test('of two changes under one ETag only the first happens; that it was applied meanwhile is no change', async () => {
  const { send } = await writerOf('Two writers');
  await send('PUT', '', closedButWeb);
  const tag = (await send('GET')).headers.get('etag')!;
  await world.jobs.drain();
  const header = { 'if-match': tag };
  const first = await send('POST', '/rules', { ...webRule, ports: '22' }, header);
  assert.equal(first.status, 201, first.text);
  for (const [method, below, body] of [
    ['PUT', '', closedButWeb],
    ['PUT', `/rules/${first.body.id}`, webRule],
    ['DELETE', `/rules/${first.body.id}`, undefined],
    ['POST', '/rules', webRule],
  ] as const)
    assert.equal((await send(method, below, body, header)).body.error.reason, 'etag_mismatch', method);
});

test('API-4.9: a change may wait until the hypervisor has it', async () => {
  const { send } = await writerOf('Waits');
  const waiting = send('PUT', '', closedButWeb, { prefer: 'wait=20' });
  let isAnswered = false;
  const answered = waiting.finally(() => {
    isAnswered = true;
  });
  while (!isAnswered) {
    await world.jobs.drain();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { status, body, headers } = await answered;
  assert.deepEqual([status, body.status], [200, 'applied']);
  assert.equal(headers.get('preference-applied'), 'wait=20');
});

test('what can’t be a rule is a 422 that names the rule and the field; nothing is changed', async () => {
  const { send, read } = await writerOf('Bad rules');
  const set = (...rules: object[]) => send('PUT', '', { ...closedButWeb, rules });
  const cases = [
    [await set(webRule, { ...webRule, ports: '9-8' }), 'rules.1.ports'],
    [await set({ ...webRule, sources: ['10.0.0.1/8'] }), 'rules.0.sources'],
    [await set({ ...webRule, direction: 'outbound', destinations: ['x'] }), 'rules.0.destinations'],
    [await set({ ...webRule, destinations: ['10.0.0.0/8'] }), 'rules.0.destinations'],
    [await set(...Array.from({ length: 51 }, () => webRule)), 'rules'],
    [await send('POST', '/rules', { ...webRule, protocol: 'icmp' }), 'ports'],
    [await send('POST', '/rules', { ...webRule, action: 'reboot' }), 'action'],
  ] as const;
  for (const [answer, path] of cases)
    assert.deepEqual([answer.status, answer.body.error.fields?.[0].path], [422, path], answer.text);
  isBlind = true;
  const blind = await send('POST', '/rules', webRule);
  isBlind = false;
  assert.deepEqual([blind.status, blind.body.error.reason], [422, 'firewall_not_supported']);
  assert.equal((await read()).version, 0);
});

test('API-5.3: a read key changes no firewall', async () => {
  const { key, serverId } = await customerWithServer('Reader');
  for (const [method, below, body] of [
    ['PUT', '', closedButWeb],
    ['POST', '/rules', webRule],
  ] as const) {
    const refused = await call(method, `/api/v2/servers/${serverId}/firewall${below}`, { key, body });
    assert.deepEqual([refused.status, refused.body.error.reason], [403, 'read_only_key']);
  }
});
