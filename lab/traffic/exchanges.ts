/**
 * The conversations that clients of the lab hold: look-up, then HTTPS with SNI, HTTP with Host, or a service that only
 * its DNS answer names.
 *
 * Each ends with its connection closed. `signal` cuts it at once, which is how the rest around the minute is kept.
 */
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { resolver as resolverSite } from './internet-plan.ts';
import { timePort, whoisPort } from './line-services.ts';

export type Family = 4 | 6;
export type Protocol = 'https' | 'http' | 'time' | 'whois' | 'lookup';

export interface Exchange {
  protocol: Protocol;
  host: string;
  family: Family;
  /** Bytes to download; ignored where the service decides. */
  bytes: number;
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
  if (exchange.protocol === 'time') return askTime(address, exchange.family, signal);
  if (exchange.protocol === 'whois') return askWhois(address, signal);
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

function askTime(address: string, family: Family, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = createSocket({ type: family === 4 ? 'udp4' : 'udp6', signal });
    const timer = setTimeout(() => {
      socket.close();
      reject(new Error('no answer from the time service'));
    }, 2000);
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(timer);
      reject(new Error('cut'));
    });
    socket.on('message', (message) => {
      resolve(message.length);
      socket.close();
    });
    socket.send(Buffer.alloc(48), timePort, address);
  });
}

function askWhois(address: string, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port: whoisPort, signal });
    let bytes = 0;
    socket.setTimeout(5000, () => socket.destroy(new Error('no answer from whois')));
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      bytes += chunk.length;
    });
    socket.on('close', () => resolve(bytes));
    socket.end('domain example.net\r\n');
  });
}
