/** Deliveries of webhooks are read only with a signature that fits. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { verifyWebhook, WebhookVerificationError } from './index.ts';

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

test('a signature that is no base64 hides no valid one, headers may be in any case, an empty secret is refused', async () => {
  const signature = sign('msg_1', at, body);
  assert.equal(
    (await verifyWebhook(secret, headers(`v1,!!! ${signature}`), body, at * 1000)).type,
    'server.destroyed',
  );
  const capital = { 'Webhook-Id': 'msg_1', 'Webhook-Timestamp': String(at), 'WEBHOOK-SIGNATURE': signature };
  assert.equal((await verifyWebhook(secret, capital, body, at * 1000)).type, 'server.destroyed');
  for (const empty of ['', 'whsec_', 'whsec_!!!'])
    await assert.rejects(verifyWebhook(empty, headers(signature), body, at * 1000), WebhookVerificationError);
});
