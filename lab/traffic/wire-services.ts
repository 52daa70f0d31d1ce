/**
 * The servers of every service that speaks by a wire. One listener for each port of TCP and TLS; the address that was called tells
 * which service answers. Over UDP each address has a socket of its own, or answers would leave from another one.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { addressRecords } from './internet-plan.ts';
import { services } from './services.ts';
import type { CertificateFiles } from './web-service.ts';
import { type Wire, wireOf } from './wires.ts';

interface Endpoint {
  addresses: readonly [ipv4: string, ipv6: string];
  wire: Wire;
  bytes: number;
  sentBytes: number;
}

const idleMs = 10_000;

export async function startWireServices(files: CertificateFiles): Promise<void> {
  const endpoints = listEndpoints();
  const tls = { cert: readFileSync(files.certificate), key: readFileSync(files.key) };
  for (const endpoint of endpoints.filter(({ wire }) => wire.transport === 'udp')) await bindUdp(endpoint);
  const listened = endpoints.filter(({ wire }) => wire.transport !== 'udp');
  for (const port of new Set(listened.map(({ wire }) => wire.port))) {
    const ofPort = listened.filter(({ wire }) => wire.port === port);
    const byAddress = new Map(
      ofPort.flatMap((endpoint) => endpoint.addresses.map((address) => [address, endpoint] as const)),
    );
    const serve = (socket: Socket) => {
      socket.on('error', () => socket.destroy());
      const endpoint = byAddress.get((socket.localAddress ?? '').replace(/^::ffff:/, ''));
      if (endpoint) answer(socket, endpoint);
      else socket.destroy();
    };
    const server = ofPort[0]!.wire.transport === 'tls' ? createTlsServer(tls, serve) : createServer(serve);
    server.on('tlsClientError', (_error, socket) => socket.destroy());
    server.listen(port, '::');
    await once(server, 'listening');
  }
}

/** The services, and the two of the plan that only their DNS answers name. */
function listEndpoints(): Endpoint[] {
  const named = (kind: 'time' | 'whois', name: string): Endpoint => {
    const { ipv4, ipv6 } = addressRecords.get(name)!;
    return { addresses: [ipv4, ipv6], wire: wireOf(kind)!, bytes: 0, sentBytes: 0 };
  };
  return [
    named('time', 'time.example.org'),
    named('whois', 'whois.example.net'),
    ...services.flatMap(({ kind, ipv4, ipv6, bytes, sentBytes }) => {
      const wire = wireOf(kind);
      return wire ? [{ addresses: [ipv4, ipv6] as const, wire, bytes, sentBytes }] : [];
    }),
  ];
}

/** Greets, waits for the whole request, and ends with the answer. */
function answer(socket: Socket, { wire, bytes, sentBytes }: Endpoint): void {
  let left = wire.request.length + sentBytes;
  socket.setTimeout(idleMs, () => socket.destroy());
  if (wire.greeting) socket.write(wire.greeting);
  socket.on('data', (chunk: Buffer) => {
    const isAsked = left > 0;
    left -= chunk.length;
    if (isAsked && left <= 0) socket.end(Buffer.concat([wire.answer, Buffer.alloc(bytes)]));
  });
}

async function bindUdp({ addresses, wire }: Endpoint): Promise<void> {
  for (const address of addresses) {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
    socket.on('message', (_message, from) => socket.send(wire.answer, from.port, from.address));
    socket.bind(wire.port, address);
    await once(socket, 'listening');
  }
}
