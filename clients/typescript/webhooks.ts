/** Verifies what a webhook delivers, by the scheme of Standard Webhooks. */
import type { WebhookEvent } from './generated/api.ts';

/** The delivery is not ours, or too old. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

/** As `node:http` has them, names in any case, or as `fetch` and what is built on it do. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

const toleranceSeconds = 300;

/**
 * The event of a delivery whose signature fits and whose time is within five minutes of now; throws otherwise.
 *
 * `body` must be the text as it was received: parsed and printed again it is another one. `secret` is `whsec_…`.
 */
export async function verifyWebhook(
  secret: string,
  headers: WebhookHeaders,
  body: string,
  nowMs: number = Date.now(),
): Promise<WebhookEvent> {
  const id = readHeader(headers, 'webhook-id');
  const timestamp = readHeader(headers, 'webhook-timestamp');
  const signatures = readHeader(headers, 'webhook-signature')
    .split(' ')
    .filter((one) => one.startsWith('v1,'));
  if (!id || !/^\d{1,12}$/.test(timestamp) || signatures.length === 0)
    throw new WebhookVerificationError('the headers of the webhook are missing');
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > toleranceSeconds)
    throw new WebhookVerificationError('the webhook is too old, or the clocks differ');
  const bytes = bytesOf(secret.replace(/^whsec_/, ''));
  if (!bytes?.length) throw new WebhookVerificationError('the secret is empty or not base64');
  const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, [
    'verify',
  ]);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  for (const signature of signatures) {
    const given = bytesOf(signature.slice(3));
    // The comparison of `verify` takes the same time wherever the two differ.
    if (given !== null && (await crypto.subtle.verify('HMAC', key, given, signed)))
      return JSON.parse(body) as WebhookEvent;
  }
  throw new WebhookVerificationError('no signature fits');
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

function readHeader(headers: WebhookHeaders, name: string): string {
  if (typeof headers.get === 'function') return (headers as Headers).get(name) ?? '';
  const found = Object.entries(headers).find(([one]) => one.toLowerCase() === name);
  return [found?.[1] ?? ''].flat()[0] ?? '';
}
