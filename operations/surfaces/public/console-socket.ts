/** WebSockets that carry consoles of servers: who has a ticket gets the bytes of the console, as binary messages. */
import { STATUS_CODES } from 'node:http';
import { type Duplex, pipeline } from 'node:stream';
import { createWebSocketStream, type WebSocket, WebSocketServer } from 'ws';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type Consoles, consolePath, type OpenConsole } from '#operations/consoles/index.ts';
import type { WebSockets } from '#service-kit/http/index.ts';

/** Longer than what a person types or pastes at once. */
const messageBytesMax = 64 * 1024;
const checkMsDefault = 5_000;
/** Checks in a row without an answer to a ping after which the client is gone. */
const missesMax = 6;
/** Open at a time in one process. */
const consolesMax = 200;

export function createConsoleSocket(deps: {
  consoles: Consoles;
  reporter: Reporter;
  /** How often it is looked whether a console may stay open. */
  checkMs?: number | undefined;
}): WebSockets {
  const { consoles, reporter, checkMs = checkMsDefault } = deps;
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: messageBytesMax,
    perMessageDeflate: false,
  });

  async function open(url: string, socket: Duplex): Promise<OpenConsole | null> {
    if (server.clients.size >= consolesMax) return refuse(socket, 503);
    const ticket = new URL(url, 'http://localhost').searchParams.get('ticket') ?? '';
    try {
      return (await consoles.open(ticket)) ?? refuse(socket, 401);
    } catch (error) {
      reporter.error('a console was not opened', { error: describeError(error) });
      return refuse(socket, 502);
    }
  }

  return {
    path: consolePath,
    async accept(request, socket, head) {
      socket.on('error', () => socket.destroy());
      const console = await open(request.url!, socket);
      if (console === null) return;
      // Also where the handshake fails, or the client has gone by now.
      if (socket.destroyed) return void console.stream.destroy();
      socket.once('close', () => console.stream.destroy());
      server.handleUpgrade(request, socket, head, (webSocket) => carry(webSocket, console, checkMs));
    },
    close() {
      for (const webSocket of server.clients) {
        webSocket.close(1001);
        webSocket.terminate();
      }
    },
  };
}

/** Carries bytes both ways until one side ends, or the console is no longer allowed. */
function carry(webSocket: WebSocket, console: OpenConsole, checkMs: number): void {
  const client = createWebSocketStream(webSocket);
  pipeline(client, console.stream, client, () => webSocket.close());
  let misses = 0;
  webSocket.on('pong', () => {
    misses = 0;
  });
  let isChecking = false;
  const check = async () => {
    if (isChecking) return;
    isChecking = true;
    // A database that does not answer allows nothing.
    const isAllowed = await console.isAllowed().catch(() => false);
    isChecking = false;
    misses += 1;
    if (!isAllowed || misses > missesMax) return void client.destroy();
    webSocket.ping();
  };
  const timer = setInterval(() => void check(), checkMs);
  webSocket.once('close', () => clearInterval(timer));
}

function refuse(socket: Duplex, status: 401 | 502 | 503): null {
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  return null;
}
