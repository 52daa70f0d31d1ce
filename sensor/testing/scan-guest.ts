/**
 * Ten services of a server, with the banners and answers of well-known programs. Says `ready` when all of them listen.
 *
 * usage: scan-guest.ts FOLDER (with `key.pem` and `certificate.pem`)
 */
import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttp, type RequestListener } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';

const folder = process.argv[2]!;
const idleMs = 60_000;

/** A service that greets, and answers each line. */
function lines(greeting: string, answer: (line: string) => string | null): Server {
  return createServer((socket) => {
    guard(socket);
    socket.write(greeting);
    socket.setEncoding('latin1').on('data', (text: string) => {
      for (const line of text.split(/\r?\n/).filter(Boolean)) {
        const said = answer(line.toUpperCase());
        if (said === null) socket.end();
        else socket.write(`${said}\r\n`);
      }
    });
  });
}

function guard(socket: Socket): void {
  socket.on('error', () => socket.destroy());
  socket.setTimeout(idleMs, () => socket.destroy());
}

const ssh = lines('SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n', () => null);
const smtp = lines('220 mail.guest.example ESMTP Postfix (Debian/GNU)\r\n', (line) => {
  if (line === 'QUIT') return null;
  if (line.startsWith('EHLO')) return '250-mail.guest.example\r\n250-PIPELINING\r\n250 8BITMIME';
  return line.startsWith('HELO') ? '250 mail.guest.example' : '502 5.5.2 Error: command not recognized';
});
const pop3 = lines('+OK Dovecot ready.\r\n', (line) =>
  line === 'QUIT' ? null : line === 'CAPA' ? '+OK\r\nUIDL\r\nTOP\r\n.' : '-ERR Unknown command.',
);
const imap = lines('* OK [CAPABILITY IMAP4rev1 IDLE] Dovecot ready.\r\n', (line) =>
  line.endsWith('LOGOUT') ? null : `${line.split(' ')[0]} BAD Error in IMAP command received by server.`,
);

const page: RequestListener = (request, response) => {
  const isRoot = request.url === '/';
  response.writeHead(isRoot ? 200 : 404, { Server: 'nginx/1.24.0', 'Content-Type': 'text/html' });
  response.end(isRoot ? '<html><title>Welcome</title></html>' : '<html><title>404</title></html>');
};
const http = createHttp(page);
const https = createHttps(
  { key: readFileSync(join(folder, 'key.pem')), cert: readFileSync(join(folder, 'certificate.pem')) },
  page,
);

const mysql = createServer((socket) => {
  guard(socket);
  const version = Buffer.from('8.0.36-0ubuntu0.22.04.1\0');
  const rest = Buffer.from(
    '2a000000414243444546474800fff7ff0200ffdf15000000000000000000004142434445464748494a4b4c0063616368696e675f736861325f70617373776f726400',
    'hex',
  );
  const body = Buffer.concat([Buffer.from([10]), version, rest]);
  socket.write(Buffer.concat([Buffer.from([body.length & 255, body.length >> 8, 0, 0]), body]));
  socket.on('data', () => socket.end());
});
const redis = createServer((socket) => {
  guard(socket);
  socket.setEncoding('latin1').on('data', (text: string) => {
    const info = '# Server\r\nredis_version:7.0.15\r\nos:Linux 6.1.0 x86_64\r\n';
    if (/^\*1\r\n\$4\r\ninfo/i.test(text)) socket.write(`$${info.length}\r\n${info}\r\n`);
    else socket.write(`-ERR unknown command '${text.slice(0, 16).split(/\s/)[0]}'\r\n`);
  });
});

/** Its version where `version.bind` is asked for, else a refusal. */
function answerDns(query: Buffer): Buffer | null {
  if (query.length < 12 || query[2]! & 0x80) return null;
  const answer = Buffer.from(query);
  answer[2]! |= 0x84;
  if (!query.includes('\x07version\x04bind')) {
    answer[3] = 5;
    return answer;
  }
  const text = 'dnsmasq-2.90';
  answer[7] = 1;
  const record = Buffer.from([0xc0, 12, 0, 16, 0, 3, 0, 0, 0, 0, 0, text.length + 1, text.length]);
  return Buffer.concat([answer, record, Buffer.from(text)]);
}

/** A time server's answer to a client of any version. */
function answerNtp(query: Buffer): Buffer | null {
  if (query.length < 48 || (query[0]! & 7) !== 3) return null;
  const answer = Buffer.alloc(48);
  answer[0] = (query[0]! & 0x38) | 4;
  answer.set([2, 6, 0xec], 1);
  const seconds = Math.floor(Date.now() / 1000) + 2_208_988_800;
  for (const at of [16, 32, 40]) answer.writeUInt32BE(seconds, at);
  query.copy(answer, 24, 40, 48);
  return answer;
}

function datagrams(answer: (query: Buffer) => Buffer | null): DatagramSocket {
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const said = answer(query);
    if (said) socket.send(said, from.port, from.address);
  });
  return socket;
}

const tcp: readonly [number, Server][] = [
  [22, ssh],
  [25, smtp],
  [80, http],
  [110, pop3],
  [143, imap],
  [443, https],
  [3306, mysql],
  [6379, redis],
];
for (const [port, server] of tcp) {
  server.listen(port, '0.0.0.0');
  await once(server, 'listening');
}
for (const [port, answer] of [
  [53, answerDns],
  [123, answerNtp],
] as const) {
  const socket = datagrams(answer).bind(port, '0.0.0.0');
  await once(socket, 'listening');
}
// It ends with the program that started it.
process.stdin.on('end', () => process.exit()).resume();
process.stdout.write('ready\n');
