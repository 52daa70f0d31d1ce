/**
 * The conversations that clients of the lab hold: look-up, then HTTPS with SNI, HTTP with Host, or the first messages of another
 * protocol, which its TLS hello names or only its DNS answer.
 *
 * Each ends with its connection closed. `signal` cuts it at once, which is how the rest around the minute is kept.
 */
import { Resolver } from 'node:dns/promises';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { holdWire } from './hold-wire.ts';
import { resolver as resolverSite } from './internet-plan.ts';
import { type WireKind, wireOf } from './wires.ts';

export type Family = 4 | 6;
export type Protocol = 'https' | 'http' | 'lookup' | WireKind;

export interface Exchange {
  protocol: Protocol;
  host: string;
  family: Family;
  /** Bytes to download; ignored where the service decides. */
  bytes: number;
  /** Bytes that follow the request of a wire. */
  sentBytes?: number;
  /** Where the server is when the client knows it without asking; else it asks the resolver. */
  address?: string;
  /** The client's own address, where its host has several. */
  localAddress?: string;
  /** PEM text of the certificate to trust. */
  certificate: string;
}

/** Holds one conversation; resolves with the bytes of the body that came, rejects when it failed or was cut. */
export async function holdExchange(exchange: Exchange, signal: AbortSignal): Promise<number> {
  const address = exchange.address ?? (await lookUp(exchange.host, exchange.family, signal));
  if (exchange.protocol === 'lookup') return 0;
  const wire = wireOf(exchange.protocol);
  if (wire) return holdWire(wire, { ...exchange, address, sentBytes: exchange.sentBytes ?? 0 }, signal);
  return download(exchange, address, signal);
}

async function lookUp(host: string, family: Family, signal: AbortSignal): Promise<string> {
  const resolver = new Resolver({ timeout: 2000, tries: 1 });
  resolver.setServers([family === 4 ? resolverSite.ipv4 : `[${resolverSite.ipv6}]`]);
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const addresses = family === 4 ? await resolver.resolve4(host) : await resolver.resolve6(host);
    return addresses[0]!;
  } finally {
    signal.removeEventListener('abort', cancel);
    // An idle resolver keeps its sockets for later; nothing of this exchange may stay open.
    resolver.cancel();
  }
}

function download(exchange: Exchange, address: string, signal: AbortSignal): Promise<number> {
  const options = {
    host: address,
    path: `/bytes/${exchange.bytes}`,
    headers: { host: exchange.host },
    agent: false as const,
    signal,
    timeout: 5000,
    ...(exchange.localAddress ? { localAddress: exchange.localAddress } : {}),
  };
  const secure = { servername: exchange.host, ca: exchange.certificate };
  return new Promise((resolve, reject) => {
    const request =
      exchange.protocol === 'https' ? httpsRequest({ ...options, ...secure }) : httpRequest(options);
    request.on('error', reject);
    request.on('timeout', () => request.destroy(new Error('no answer within five seconds')));
    request.on('response', (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on('error', reject);
      response.on('end', () => {
        const isWhole = response.statusCode === 200 && bytes === exchange.bytes;
        if (isWhole) resolve(bytes);
        else reject(new Error(`${bytes} of ${exchange.bytes} bytes came, status ${response.statusCode}`));
      });
    });
    request.end();
  });
}
