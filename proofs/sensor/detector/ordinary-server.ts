/**
 * A web server for ordinary traffic: `/page` of a few kilobytes, `/endless` as fast as the line. Says `ready` when it listens.
 *
 * usage: ordinary-server.ts KEY_FILE CERTIFICATE_FILE    (port 80, and 443 with TLS)
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';

const [keyFile, certificateFile] = process.argv.slice(2);
const page = Buffer.alloc(4000, 'x');
const piece = Buffer.alloc(1 << 20, 'x');
/** Connections that wait for the program. */
const backlog = 4096;

const answer: RequestListener = (request, response) => {
  if (request.url !== '/endless') {
    response.end(page);
    return;
  }
  const send = () => {
    while (!response.destroyed && response.write(piece));
  };
  response.on('drain', send);
  send();
};

const servers = [
  [createServer(answer), 80],
  [createTlsServer({ key: readFileSync(keyFile!), cert: readFileSync(certificateFile!) }, answer), 443],
] as const;
for (const [server, port] of servers) {
  server.listen({ port, host: '::', backlog });
  await once(server, 'listening');
}
process.stdout.write('ready\n');
