import { createHmac, randomBytes } from 'node:crypto';

/** How a secret is shown, once. */
export function formatSecret(secret: Buffer): string {
  return `whsec_${secret.toString('base64')}`;
}

export function mintSecret(): Buffer {
  return randomBytes(32);
}

/** The headers of one attempt, by Standard Webhooks; several secrets give several signatures, and one that fits is enough. */
export function signDelivery(
  secrets: readonly Buffer[],
  id: string,
  timestampSeconds: number,
  body: string,
): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const mac = createHmac('sha256', secret).update(`${id}.${timestampSeconds}.${body}`).digest('base64');
    return `v1,${mac}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signatures.join(' '),
  };
}
