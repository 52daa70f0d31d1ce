/** Two services that speak no name on the wire, so that only a DNS answer names them: time (UDP) and whois (TCP). */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { addressRecords } from './internet-plan.ts';

export const timePort = 123;
export const whoisPort = 43;
const timeAnswerBytes = 48;
const whoisAnswerBytes = 1200;

/** Starts both on their addresses of the plan. */
export async function startLineServices(): Promise<void> {
  const time = addressRecords.get('time.example.org')!;
  for (const [type, address] of [
    ['udp4', time.ipv4],
    ['udp6', time.ipv6],
  ] as const) {
    const socket = createSocket(type);
    socket.on('message', (_message, from) =>
      socket.send(Buffer.alloc(timeAnswerBytes), from.port, from.address),
    );
    socket.bind(timePort, address);
    await once(socket, 'listening');
  }
  const whois = createServer((connection) => {
    connection.on('error', () => connection.destroy());
    connection.once('data', () => connection.end(Buffer.alloc(whoisAnswerBytes, 'x')));
  });
  whois.listen(whoisPort, '::');
  await once(whois, 'listening');
}
