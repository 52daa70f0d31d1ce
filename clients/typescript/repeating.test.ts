/** When a call is repeated, how long it waits, and what it never repeats. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerOf, ConnectionError, NotFoundError, RateLimitedError, WaitError } from './index.ts';
import { later, refusalOf, scripted, scriptedKey } from './testing/scripted.ts';

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
    assert.deepEqual([thrown.code, thrown.reason, thrown.retryAfterSeconds], ['rate_limited', 'key_rate', 1]);
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
    new Response(refusalOf('not_found'), { status: 404, headers }),
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
  const gone = scripted([null, new Response(refusalOf('not_found'), { status: 404 })]);
  assert.equal(await gone.client.deleteNetwork(2), undefined);
  const never = scripted([new Response(refusalOf('not_found'), { status: 404 })]);
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
  const { client, sent } = scripted([
    new Response(refusalOf('not_found'), { status: 404 }),
    Response.json({}),
  ]);
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
    (thrown) => !String((thrown as Error).stack).includes(scriptedKey),
  );
});

test('waiting for a server lasts as long as its caller gives it: the API is asked to wait no longer', async () => {
  const answers = Array.from({ length: 9 }, () => Response.json({ id: 1, status: 'queued' }));
  const { client, sent, waits } = scripted(answers);
  await assert.rejects(client.waitForServer(1, 'running', { timeoutMs: 3_000 }), WaitError);
  assert.deepEqual(
    sent.map(({ headers }) => headers.prefer),
    ['wait=3', 'wait=1', 'wait=0'],
  );
  assert.deepEqual(waits, [2_000, 1_000]);
});
