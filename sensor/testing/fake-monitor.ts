/** A small HTTP server instead of the monitor, for answers that the real one gives only in failures. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  decodeUpload,
  decompressUpload,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';

export interface FakeAnswer {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
  /** Closes the connection without an answer after the request was read. */
  cut?: boolean;
}

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

export type FakeMonitor = Awaited<ReturnType<typeof startFakeMonitor>>;

/** A monitor without scans, as older ones are, answers 404 for their plan; such requests are not recorded. */
const scansPath = '/agent/v1/port-scans';

/** Starts the server; `answer` decides on each request, of scans only where it `plansScans`. */
export async function startFakeMonitor(
  t: { after(end: () => void): void },
  answer: (request: ReceivedRequest, index: number) => FakeAnswer,
  { plansScans = false } = {},
) {
  const requests: ReceivedRequest[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const server = createServer(async (incoming, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece as Buffer);
    if (incoming.url === scansPath && !plansScans) {
      response.writeHead(404).end();
      return;
    }
    const request: ReceivedRequest = {
      method: incoming.method ?? '',
      path: incoming.url ?? '',
      headers: incoming.headers,
      body: Buffer.concat(pieces),
    };
    const { status, body, headers, cut } = answer(request, requests.push(request) - 1);
    if (cut) incoming.socket.destroy();
    else {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(body === undefined ? '' : JSON.stringify(body));
    }
    for (const one of waiting) if (requests.length >= one.count) one.resolve();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    /** Resolves when `count` requests in all have been answered. */
    received: (count: number) =>
      new Promise<void>((resolve) => {
        if (requests.length >= count) resolve();
        else waiting.push({ count, resolve });
      }),
  };
}

/** The upload in a request. */
export function uploadIn(request: ReceivedRequest): TelemetryUpload {
  return decodeUpload(decompressUpload(request.body, request.headers['content-encoding']));
}

/** The receipt for an upload. */
export function receiptFor(
  request: ReceivedRequest,
  receipt: 'accepted' | 'duplicate' = 'accepted',
): FakeAnswer {
  const { spoolId, sequence } = uploadIn(request);
  return { status: 200, body: { spool_id: spoolId, sequence, receipt } };
}

/** A refusal or failure in the monitor's format. */
export function refusal(status: number, message: string, headers: Record<string, string> = {}): FakeAnswer {
  return { status, body: { error: { code: 'some.code', message } }, headers };
}
