/**
 * Services of guests with the greetings and answers of old releases of well-known programs, so that scans of ports find versions to
 * look up. They do nothing else: no login, no data.
 */
import { once } from 'node:events';
import { createServer as createHttp } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';

/**
 * `old_releases`: versions as their authors publish them; `packages`: of a distribution, which mends faults without a new version;
 * `other_programs`: programs that hardly anything is known of.
 */
export const serviceSets = ['old_releases', 'packages', 'other_programs'] as const;
export type ServiceSet = (typeof serviceSets)[number];

/** The set of a guest, by the number at the end of its name: `vm-1` has the first, `vm-2` the second, `vm-4` the first again. */
export function serviceSetOf(guestName: string): ServiceSet {
  const number = Number(/\d{1,9}$/.exec(guestName)?.[0] ?? 1);
  return serviceSets[(number + serviceSets.length - 1) % serviceSets.length]!;
}

const idleMs = 60_000;

/** Listens on every address of its namespace, IPv4 and IPv6. */
export async function startOldServices(set: ServiceSet): Promise<void> {
  for (const [port, server] of makeServices[set]()) {
    server.listen({ host: '::', port });
    await once(server, 'listening');
  }
}

type Services = readonly (readonly [port: number, server: Server])[];

const makeServices: Readonly<Record<ServiceSet, () => Services>> = {
  old_releases: () => [
    [22, greet('SSH-2.0-OpenSSH_8.9\r\n')],
    [25, smtp('220 mail.example.edu ESMTP Postfix\r\n')],
    [3306, mysql('5.7.40')],
    [6379, redis('6.0.15')],
    [8080, web('nginx/1.18.0')],
  ],
  packages: () => [
    [22, greet('SSH-2.0-OpenSSH_9.6p1 Ubuntu-3ubuntu13.5\r\n')],
    [3306, mysql('8.0.36-0ubuntu0.22.04.1')],
    [8080, web('nginx/1.24.0')],
  ],
  other_programs: () => [
    [22, greet('SSH-2.0-dropbear_2022.83\r\n')],
    [25, smtp('220 mail.example.edu ESMTP Postfix\r\n')],
    [8080, web('lighttpd/1.4.69')],
  ],
};

/** A service that takes connections and lets go of those that stay silent. */
function serve(talk: (socket: Socket) => void): Server {
  return createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.setTimeout(idleMs, () => socket.destroy());
    talk(socket);
  });
}

/** Greets, and hangs up at the first word. */
function greet(greeting: string): Server {
  return serve((socket) => {
    socket.write(greeting);
    socket.on('data', () => socket.end());
  });
}

function smtp(greeting: string): Server {
  return serve((socket) => {
    socket.write(greeting);
    socket.setEncoding('latin1').on('data', (text: string) => {
      const word = text.slice(0, 4).toUpperCase();
      if (word === 'QUIT') socket.end('221 2.0.0 Bye\r\n');
      else if (word === 'EHLO' || word === 'HELO') socket.write('250 mail.example.edu\r\n');
      else socket.write('502 5.5.2 Error: command not recognized\r\n');
    });
  });
}

/** The rest of a server's first packet: connection, salt, capabilities, character set, state, method. */
const mysqlRest = Buffer.from(
  '2a000000414243444546474800fff7ff0200ffdf15000000000000000000004142434445464748494a4b4c0063616368696e675f736861325f70617373776f726400',
  'hex',
);

function mysql(version: string): Server {
  const body = Buffer.concat([Buffer.from([10]), Buffer.from(`${version}\0`), mysqlRest]);
  const packet = Buffer.concat([Buffer.from([body.length & 255, body.length >> 8, 0, 0]), body]);
  return serve((socket) => {
    socket.write(packet);
    socket.on('data', () => socket.end());
  });
}

function redis(version: string): Server {
  const info = `# Server\r\nredis_version:${version}\r\nos:Linux 6.1.0 x86_64\r\n`;
  return serve((socket) => {
    socket.setEncoding('latin1').on('data', (text: string) => {
      const isInfo = /^\*1\r\n\$4\r\ninfo/i.test(text);
      socket.write(isInfo ? `$${info.length}\r\n${info}\r\n` : '-ERR unknown command\r\n');
    });
  });
}

function web(name: string): Server {
  const server = createHttp((request, response) => {
    request.resume();
    const isRoot = request.url === '/';
    response.writeHead(isRoot ? 200 : 404, { Server: name, 'Content-Type': 'text/html' });
    response.end(isRoot ? '<html><title>Welcome</title></html>' : '<html><title>404</title></html>');
  });
  server.setTimeout(idleMs);
  return server.on('clientError', (_error, socket) => socket.destroy());
}
