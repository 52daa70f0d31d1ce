/**
 * A receiver of webhooks in a process of its own, as a customer would write one from the specification of Standard
 * Webhooks, sharing no code with the sender.
 *
 * It verifies each delivery with the secrets that it was told on standard input, writes one line of JSON about it, and
 * answers with the status that is next in its path: `/503/503/200` fails twice and then takes everything.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** What the receiver writes about each delivery. */
export interface Received {
  path: string;
  status: number;
  id: string;
  timestamp: number;
  signatures: number;
  /** How many of its signatures fit one of the secrets. */
  fitting: number;
  contentType: string;
  body: { type: string; timestamp: string; data: Record<string, unknown> };
}

/** By the specification: base64 of HMAC-SHA256 over `id.timestamp.body`, the key is the base64 behind `whsec_`. */
export function countFitting(
  secrets: readonly string[],
  headers: { id: string; timestamp: string; signature: string },
  body: Buffer,
): number {
  const content = Buffer.concat([Buffer.from(`${headers.id}.${headers.timestamp}.`), body]);
  const expected = secrets.map((secret) => {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    return createHmac('sha256', key).update(content).digest();
  });
  return headers.signature.split(' ').filter((part) => {
    const [version, mac] = part.split(',');
    const given = Buffer.from(mac ?? '', 'base64');
    return (
      version === 'v1' && expected.some((one) => one.length === given.length && timingSafeEqual(one, given))
    );
  }).length;
}

function run(): void {
  const secrets: string[] = [];
  const seen = new Map<string, number>();
  createInterface({ input: process.stdin }).on('line', (line) => secrets.push(line));
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces);
    const path = request.url!;
    const count = seen.get(path) ?? 0;
    seen.set(path, count + 1);
    const statuses = path.split('/').filter((part) => /^\d{3}$/.test(part));
    const status = Number(statuses[Math.min(count, statuses.length - 1)] ?? 200);
    const { headers } = request;
    const signed = {
      id: String(headers['webhook-id']),
      timestamp: String(headers['webhook-timestamp']),
      signature: String(headers['webhook-signature']),
    };
    const received: Received = {
      path,
      status,
      id: signed.id,
      timestamp: Number(signed.timestamp),
      signatures: signed.signature.split(' ').length,
      fitting: countFitting(secrets, signed, body),
      contentType: String(headers['content-type']),
      body: JSON.parse(body.toString('utf8')),
    };
    process.stdout.write(`${JSON.stringify(received)}\n`);
    if (status >= 300 && status < 400) response.setHeader('location', '/redirected/200');
    response.writeHead(status).end('what a receiver says: secret-of-the-receiver');
  });
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) run();
