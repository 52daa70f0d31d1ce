/**
 * A small HTTP client on a thread of its own, so that it takes no time of the server it measures: it keeps one request
 * under way on each of its connections and counts the answers.
 */
import { connect } from 'node:net';
import { parentPort } from 'node:worker_threads';

/** What the measuring side sends. */
export interface LoadOrder {
  port: number;
  /** Of each connection, in turn. */
  paths: readonly string[];
  headers: readonly Record<string, string>[];
  connections: number;
  /** Of every answer; any other is a failure. */
  status: number;
  warmUpMs: number;
  durationMs: number;
}

/** What it gets back. */
export interface LoadResult {
  answers: number;
  /** With those of the warm-up and of the end. */
  all: number;
  failures: number;
  seconds: number;
}

parentPort?.on('message', async (order: LoadOrder) => parentPort!.postMessage(await measure(order)));

async function measure(order: LoadOrder): Promise<LoadResult> {
  const requestOf = (index: number) => {
    const headers = Object.entries(order.headers[index % order.headers.length]!);
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
    return `GET ${order.paths[index % order.paths.length]} HTTP/1.1\r\nhost: localhost\r\n${lines.join('')}\r\n`;
  };
  const state = { isCounting: false, isOver: false, answers: 0, all: 0, failures: 0 };
  const connections = Array.from({ length: order.connections }, (_, index) =>
    talk(order, requestOf(index), state),
  );
  await new Promise((wake) => setTimeout(wake, order.warmUpMs));
  state.isCounting = true;
  const start = performance.now();
  await new Promise((wake) => setTimeout(wake, order.durationMs));
  state.isOver = true;
  const seconds = (performance.now() - start) / 1000;
  await Promise.all(connections);
  return { answers: state.answers, all: state.all, failures: state.failures, seconds };
}

/** Sends the request, waits for the whole answer, and so on until it is over. */
function talk(
  { port, status }: LoadOrder,
  request: string,
  state: { isCounting: boolean; isOver: boolean; answers: number; all: number; failures: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    let received = '';
    socket.setEncoding('latin1');
    socket.on('connect', () => socket.write(request));
    socket.on('error', reject);
    socket.on('close', () => resolve());
    socket.on('data', (piece: string) => {
      received += piece;
      const end = received.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(received.slice(0, end + 2))?.[1] ?? 0);
      if (received.length < end + 4 + length) return;
      state.all += 1;
      if (state.isCounting && !state.isOver) {
        state.answers += 1;
        if (!received.startsWith(`HTTP/1.1 ${status} `)) state.failures += 1;
      }
      received = '';
      if (state.isOver) socket.end();
      else socket.write(request);
    });
  });
}
