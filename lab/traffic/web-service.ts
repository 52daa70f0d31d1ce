/**
 * HTTP and TLS servers that answer `GET /bytes/N` with exactly N bytes and take in any `POST /discard`; sites of the
 * internet and guests run the same.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';

const bodyBytesMax = 16 * 1024 * 1024;

export interface CertificateFiles {
  certificate: string;
  key: string;
}

/** Listens on 80 and 443 of every address of its namespace, IPv4 and IPv6. */
export async function startWebService(files: CertificateFiles): Promise<void> {
  const tls = { cert: readFileSync(files.certificate), key: readFileSync(files.key) };
  const servers = [
    { server: createServer(answerRequest), port: 80 },
    { server: createTlsServer(tls, answerRequest), port: 443 },
  ];
  for (const { server, port } of servers) {
    server.on('clientError', (_error, socket) => socket.destroy());
    server.listen({ host: '::', port });
    await once(server, 'listening');
  }
}

function answerRequest(request: IncomingMessage, response: ServerResponse): void {
  const bytes = Number(/^\/bytes\/(\d{1,9})$/.exec(request.url ?? '')?.[1] ?? Number.NaN);
  request.resume();
  if (request.method === 'POST' && request.url === '/discard') {
    request.on('end', () => response.writeHead(204).end());
    return;
  }
  if (!(bytes <= bodyBytesMax)) {
    response.writeHead(404, { 'content-length': 0, connection: 'close' }).end();
    return;
  }
  // One body of zeros would compress on the way in the real world; these links compress nothing.
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-length': bytes,
    connection: 'close',
  });
  response.end(Buffer.alloc(bytes));
}
