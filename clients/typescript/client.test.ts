import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { createAnswerChecker } from '#contracts/customer-api/testing/check-answer.ts';
import { createWorld, type World } from '#operations/testing/create-world.ts';
import { deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { incidentOf, secondsAgo } from '#operations/testing/incident-of.ts';
import { switchViews } from '#operations/testing/switch-views.ts';
import {
  ApiError,
  answerOf,
  type Client,
  ConnectionError,
  createClient,
  ForbiddenError,
  NotFoundError,
  PreconditionFailedError,
  RateLimitedError,
  UnauthorizedError,
  ValidationError,
  verifyWebhook,
  WebhookVerificationError,
} from './index.ts';

interface Sent {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string | undefined;
}

const error = (code: string, more: object = {}) =>
  JSON.stringify({
    error: { code, message: 'No.', request_id: 'req_1', retryable: false, doc_url: '/docs/api/', ...more },
  });
const later = error('rate_limited', { reason: 'key_rate', retryable: true });

/** A client whose server gives these answers in turn; `null` is a broken connection. */
function scripted(answers: (Response | null)[], options: { deadlineMs?: number } = {}) {
  let nowMs = 0;
  const sent: Sent[] = [];
  const waits: number[] = [];
  const client = createClient({
    url: 'https://api.test/',
    key: 'svc_k_s',
    random: () => 0.5,
    wait: async (ms) => {
      waits.push(ms);
      nowMs += ms;
    },
    now: () => nowMs,
    ...options,
    fetch: async (url, init) => {
      const { method, headers, body } = init as {
        method: string;
        headers: Record<string, string>;
        body?: string;
      };
      sent.push({ method, url: String(url), headers, body });
      const answer = answers.shift();
      if (!answer) throw new TypeError('fetch failed');
      return answer;
    },
  });
  return { client, sent, waits };
}

describe('repeating calls', () => {
  test('a refusal with Retry-After is waited out, never shorter, and with jitter', async () => {
    const refusal = () => new Response(later, { status: 429, headers: { 'retry-after': '7' } });
    const { client, sent, waits } = scripted([refusal(), refusal(), Response.json({ id: 1 })]);
    await client.readServer(1);
    assert.equal(sent.length, 3);
    for (const ms of waits) assert.ok(ms > 7_000 && ms < 9_000, String(ms));
  });

  test('it gives up after its retries and throws what the last answer said', async () => {
    const { client, sent, waits } = scripted(
      Array.from({ length: 9 }, () => new Response(later, { status: 429, headers: { 'retry-after': '1' } })),
    );
    await assert.rejects(client.readServer(1), (thrown) => {
      assert.ok(thrown instanceof RateLimitedError);
      assert.deepEqual(
        [thrown.code, thrown.reason, thrown.retryAfterSeconds],
        ['rate_limited', 'key_rate', 1],
      );
      return true;
    });
    assert.deepEqual([sent.length, waits.length], [5, 4]);
  });

  test('a Retry-After beyond the deadline is not waited for: the error comes at once', async () => {
    const refusal = () => new Response(later, { status: 429, headers: { 'retry-after': '2648' } });
    const { client, sent, waits } = scripted([refusal(), refusal()]);
    await assert.rejects(client.readServer(1), (thrown) => {
      assert.ok(thrown instanceof RateLimitedError);
      assert.equal(thrown.retryAfterSeconds, 2_648);
      return true;
    });
    assert.deepEqual([sent.length, waits], [1, []]);
  });

  test('the deadline counts all attempts and the pauses between them', async () => {
    const refusal = () => new Response(later, { status: 429, headers: { 'retry-after': '7' } });
    const { client, sent, waits } = scripted(Array.from({ length: 9 }, refusal), { deadlineMs: 20_000 });
    await assert.rejects(client.readServer(1), RateLimitedError);
    assert.equal(sent.length, 3);
    assert.ok(waits.reduce((sum, ms) => sum + ms, 0) < 20_000);
    const patient = scripted([refusal(), Response.json({ id: 1 })], { deadlineMs: 1 });
    await patient.client.readServer(1, { deadlineMs: 60_000 });
    assert.equal(patient.sent.length, 2, 'a call may have a deadline of its own');
  });

  test('every answer tells its request id, its quota and its tag, refusals and empty ones too', async () => {
    const headers = {
      'x-request-id': 'req_9',
      etag: '"tag"',
      'x-api-quota-limit': '5000',
      'x-api-quota-remaining': '4990',
      'x-api-quota-used': '10',
    };
    const { client } = scripted([
      Response.json({ id: 1 }, { headers }),
      new Response(null, { status: 204, headers }),
      new Response(error('not_found'), { status: 404, headers }),
    ]);
    const quota = { limit: 5_000, remaining: 4_990, used: 10 };
    const server = await client.readServer(1);
    const told = answerOf(server);
    assert.deepEqual([told.requestId, told.etag, told.quota], ['req_9', '"tag"', quota]);
    const heard: (number | null)[] = [];
    await client.deleteNetwork(1, { onAnswer: ({ status }) => heard.push(status) });
    assert.deepEqual(heard, [204]);
    await assert.rejects(client.readServer(1), (thrown) => {
      assert.ok(thrown instanceof NotFoundError);
      assert.deepEqual(thrown.answer.quota, quota);
      return true;
    });
    assert.throws(() => answerOf({}), TypeError);
  });

  test('what is the same when it is done twice is repeated after a lost answer', async () => {
    const attach = scripted([null, Response.json({ network_id: 2 })]);
    await attach.client.attachServer(1, { network_id: 2 });
    assert.equal(attach.sent.length, 2);
    const sync = scripted([null, Response.json({ id: 2 })]);
    await sync.client.syncNetwork(2);
    assert.equal(sync.sent.length, 2);
    // The first attempt deleted it; its answer was lost.
    const gone = scripted([null, new Response(error('not_found'), { status: 404 })]);
    assert.equal(await gone.client.deleteNetwork(2), undefined);
    const never = scripted([new Response(error('not_found'), { status: 404 })]);
    await assert.rejects(never.client.deleteNetwork(2), NotFoundError);
  });

  test('a change under ifMatch is not repeated after a lost answer: its own success would look like a conflict', async () => {
    const { client, sent } = scripted([null, Response.json({ id: 1 })]);
    await assert.rejects(client.updateServer(1, { name: 'a' }, { ifMatch: '"tag"' }), ConnectionError);
    assert.equal(sent.length, 1);
    assert.equal(sent[0]!.headers['if-match'], '"tag"');
  });

  test('a read is repeated when the connection breaks, with growing pauses', async () => {
    const { client, waits } = scripted([null, null, null, Response.json({ id: 1 })]);
    await client.readServer(1);
    assert.deepEqual(waits, [375, 750, 1500]);
  });

  test('a command whose answer was lost is not repeated: it may have happened', async () => {
    const { client, sent } = scripted([null, Response.json({})]);
    await assert.rejects(client.call({ method: 'POST', path: '/x', body: {}, options: {} }), ConnectionError);
    assert.equal(sent.length, 1);
  });

  test('a create with an idempotency key is repeated, under the same name', async () => {
    const { client, sent } = scripted([
      null,
      new Response('<html>', { status: 502 }),
      Response.json({ id: 1 }),
    ]);
    const create = { method: 'POST', path: '/x', body: { a: 1 }, takesIdempotencyKey: true };
    await client.call({ ...create, options: {} });
    const names = new Set(sent.map((one) => one.headers['idempotency-key']));
    assert.equal(sent.length, 3);
    assert.equal(names.size, 1);
    assert.match([...names][0]!, /^[0-9a-f-]{36}$/);
    const own = scripted([Response.json({})]);
    await own.client.call({ ...create, options: { idempotencyKey: 'order-17' } });
    assert.equal(own.sent[0]!.headers['idempotency-key'], 'order-17');
  });

  test('what can not succeed later is thrown at once', async () => {
    const { client, sent } = scripted([new Response(error('not_found'), { status: 404 }), Response.json({})]);
    await assert.rejects(client.readServer(1), NotFoundError);
    assert.equal(sent.length, 1);
  });

  test('the caller’s signal ends a call between its attempts', async () => {
    const abort = new AbortController();
    const { client } = scripted([null, Response.json({})]);
    abort.abort(new Error('enough'));
    await assert.rejects(client.readServer(1, { signal: abort.signal }), /enough/);
  });

  test('no error holds the key', async () => {
    const { client } = scripted([]);
    await assert.rejects(
      client.readServer(1),
      (thrown) => !String((thrown as Error).stack).includes('svc_k_s'),
    );
  });
});

describe('against the API itself', () => {
  let world: World;
  let api: Client;
  let token: string;
  const checker = createAnswerChecker();
  const checked: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    checker.check({
      method: init!.method!,
      path: String(input).slice(world.url.length),
      status: answer.status,
      headers: Object.fromEntries(answer.headers),
      text: await answer.clone().text(),
    });
    return answer;
  };
  before(async () => {
    world = await createWorld();
    token = await world.createKey(await world.createCustomer('Client'));
    api = createClient({ url: world.url, key: token, fetch: checked });
  });
  after(() => world[Symbol.asyncDispose]());

  test('it deploys, waits, lists, switches and destroys', async () => {
    const created = await api.createServer({ plan: 'small', image: 'debian-12', name: 'one' });
    assert.ok(created.root_password);
    await world.jobs.drain();
    assert.equal((await api.waitForServer(created.id, 'running')).name, 'one');
    const action = await api.actOnServer(created.id, { action: 'stop' });
    await world.jobs.drain();
    assert.equal((await api.waitForAction(action)).status, 'success');
    const { tenants } = await api.listTenants();
    const page = await api.listServers({ tenant: tenants[0]!.slug });
    assert.deepEqual(
      page.servers.map((server) => server.status),
      ['stopped'],
    );
    await api.destroyServer(created.id);
    await world.jobs.drain();
    await assert.rejects(api.readServer(created.id), NotFoundError);
  });

  test('a change under the tag of an older read is refused, and one under the newest goes through', async () => {
    const created = await api.createServer({ plan: 'small', image: 'debian-12', name: 'tagged' });
    const ifMatch = answerOf(created).etag!;
    const renamed = await api.updateServer(created.id, { name: 'renamed' }, { ifMatch });
    await assert.rejects(
      api.updateServer(created.id, { name: 'again' }, { ifMatch }),
      PreconditionFailedError,
    );
    const newest = answerOf(renamed).etag!;
    assert.equal(
      (await api.updateServer(created.id, { name: 'newest' }, { ifMatch: newest })).name,
      'newest',
    );
    assert.ok((answerOf(renamed).quota?.used ?? 0) > 0);
    await world.jobs.drain();
    await api.destroyServer(created.id);
    await world.jobs.drain();
  });

  test('a list is walked through page by page, every item once', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e'])
      await api.createServer({ plan: 'small', image: 'debian-12', name });
    const names: string[] = [];
    for await (const server of api.listServers({ sort: 'created_at', limit: 2 })) names.push(server.name);
    assert.deepEqual(names, ['a', 'b', 'c', 'd', 'e']);
    const sizes: number[] = [];
    for await (const page of api.listServers({ limit: 2 }).pages()) sizes.push(page.servers.length);
    assert.deepEqual(sizes, [2, 2, 1]);
  });

  test('traffic is read by range, step and address; what was not observed is null', async () => {
    const customer = await world.createCustomer('Traffic');
    const reader = createClient({
      url: world.url,
      key: await world.createKey(customer, 'read'),
      fetch: checked,
    });
    const { serverId } = await world.deploy(customer.tenant, 'busy');
    await world.backdate(serverId, '3 hours');
    const [first, second] = await world.addresses.listAllocationsOfServers([serverId]);
    const fromMs = (Math.floor(Date.now() / 3_600_000) - 1) * 3_600_000;
    const monitor = await world.createToken(['protect_telemetry_ingest']);
    await deliverMinutes(world, monitor, first!, [[fromMs + 60_000, { in: 750, out: 75 }]]);
    await deliverMinutes(world, monitor, second!, [[fromMs + 60_000, { in: 75, out: 75 }]]);
    const range = { from: new Date(fromMs).toISOString(), to: new Date(fromMs + 180_000).toISOString() };
    const all = await reader.readServerTraffic(serverId, range);
    assert.deepEqual(
      all.points.map((point) => point.inbound_bps),
      [null, 110, null],
    );
    const one = await reader.readServerTraffic(serverId, {
      ...range,
      step: 'hour',
      address: second!.address,
    });
    assert.deepEqual([one.points.length, one.points[0]?.outbound_bytes], [1, 75]);
    await assert.rejects(
      reader.readServerTraffic(serverId, { from: '2026-11-22' }),
      (thrown) => thrown instanceof ValidationError && thrown.fields[0]?.path === 'from',
    );
    await assert.rejects(api.readServerTraffic(serverId), NotFoundError);
  });

  test('attacks of a server are walked through page by page, and hidden ones say why', async () => {
    const customer = await world.createCustomer('Attacked');
    const reader = createClient({
      url: world.url,
      key: await world.createKey(customer, 'read'),
      fetch: checked,
    });
    const { serverId } = await world.deploy(customer.tenant, 'attacked');
    await world.backdate(serverId, '3 hours');
    const [first] = await world.addresses.listAllocationsOfServers([serverId]);
    const attacks = [5, 4, 3].map((minutes) =>
      incidentOf(first!.address, { started_at: secondsAgo(minutes * 60) }),
    );
    const monitor = await world.createToken(['ddos_incident_ingest']);
    const delivered = await fetch(`${world.url}/api/admin/v1/protect/incidents/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${monitor}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        contract_version: 1,
        source_site_id: 1,
        cluster_ids: [world.clusterId],
        incidents: attacks,
      }),
    });
    assert.equal(delivered.status, 200);
    const found: string[] = [];
    for await (const attack of reader.listServerIncidents(serverId, { state: 'active', limit: 2 })) {
      assert.deepEqual([attack.class, attack.vectors[0]?.ports], ['syn_flood', [443]]);
      found.push(attack.id);
    }
    assert.deepEqual(found, attacks.map(({ id }) => id).toReversed());
    await switchViews(world, customer, serverId, false);
    await assert.rejects(
      async () => await reader.listServerIncidents(serverId),
      (thrown) => thrown instanceof NotFoundError && thrown.reason === 'protect_disabled',
    );
  });

  test('refusals are typed, and say what was wrong', async () => {
    await assert.rejects(api.createServer({ plan: 'huge', image: 'debian-12' }), (thrown) => {
      assert.ok(thrown instanceof ValidationError);
      assert.equal(thrown.fields[0]?.path, 'plan');
      assert.match(thrown.requestId, /^req_/);
      return true;
    });
    const wrong = createClient({ url: world.url, key: `${token.slice(0, -1)}~`, fetch: checked });
    await assert.rejects(
      wrong.listServers().catch((error: unknown) => Promise.reject(error)),
      UnauthorizedError,
    );
    const customer = await world.createCustomer('Reads');
    const reader = createClient({
      url: world.url,
      key: await world.createKey(customer, 'read'),
      fetch: checked,
    });
    await assert.rejects(reader.createServer({ plan: 'small', image: 'debian-12' }), (thrown) => {
      assert.ok(thrown instanceof ForbiddenError && thrown instanceof ApiError);
      assert.equal(thrown.reason, 'read_only_key');
      return true;
    });
  });
});

describe('webhooks', () => {
  const secret = `whsec_${Buffer.from('a secret of thirty-two bytes....').toString('base64')}`;
  const body = '{"type":"server.destroyed","timestamp":"2026-11-21T10:00:00.000Z","data":{"server_id":1}}';
  const sign = (id: string, at: number, text: string) =>
    `v1,${createHmac('sha256', 'a secret of thirty-two bytes....').update(`${id}.${at}.${text}`).digest('base64')}`;
  const at = 1_763_716_800;
  const headers = (signature: string) => ({
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(at),
    'webhook-signature': signature,
  });

  test('a delivery with a signature that fits is read; the documented vector of Standard Webhooks too', async () => {
    const event = await verifyWebhook(secret, headers(`v1,AAAA ${sign('msg_1', at, body)}`), body, at * 1000);
    assert.equal(event.type, 'server.destroyed');
    const vector = {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    };
    const known = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const read = await verifyWebhook(known, vector, '{"test": 2432232314}', 1_614_265_330_000);
    assert.deepEqual(read, { test: 2432232314 });
    // As a fetch handler has them, and as node:http types them.
    for (const form of [
      new Headers(vector),
      Object.fromEntries(Object.entries(vector).map(([n, v]) => [n, [v]])),
    ])
      assert.deepEqual(await verifyWebhook(known, form, '{"test": 2432232314}', 1_614_265_330_000), read);
  });

  test('another body, another id, an old time and a missing header are refused', async () => {
    const good = headers(sign('msg_1', at, body));
    const refuse = (given: Record<string, string>, text = body, nowMs = at * 1000) =>
      assert.rejects(verifyWebhook(secret, given, text, nowMs), WebhookVerificationError);
    await refuse(good, `${body} `);
    await refuse({ ...good, 'webhook-id': 'msg_2' });
    await refuse({ ...good, 'webhook-timestamp': `${at}.0` });
    await refuse(good, body, (at + 301) * 1000);
    await refuse(good, body, (at - 301) * 1000);
    await refuse({ 'webhook-id': 'msg_1', 'webhook-timestamp': String(at) });
    await refuse(headers('v1,not base64 at all'));
  });
});
