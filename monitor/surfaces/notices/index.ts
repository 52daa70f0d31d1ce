/**
 * `POST /integrations/operations/vm-destroyed`: signed notices about destroyed virtual machines (NET-2.8).
 *
 * Only a valid signature and a timestamp within five minutes admit a notice, and the body is not parsed before both are
 * checked (NET-5.4): the timestamp before the body arrives, the signature over the raw bytes. Every refusal has the
 * same body, so that a caller can not tell which check failed. Refusals are counted, because they show a forgotten
 * rotation of the secret.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Compile } from 'typebox/compile';
import type { Clock } from '#common/clock/index.ts';
import {
  DestroyNotice,
  DestroyNoticeResult,
  isFreshTimestamp,
  noticeBytesMax,
  noticePath,
  signatureHeader,
  timestampHeader,
  verifyNotice,
} from '#contracts/destroy-notice/index.ts';
import type { Inventory } from '#monitor/inventory/index.ts';
import type { Connection } from '#monitor/operations-client/index.ts';
import {
  type App,
  findUnkeepableTexts,
  HttpError,
  parseStrictJson,
  unkeepableText,
} from '#service-kit/http/index.ts';

const refusal = JSON.stringify({
  error: { code: 'unauthorized', message: 'The signature or the timestamp of this notice is not valid.' },
});
const Notice = Compile(DestroyNotice);

export async function registerNotices(
  app: App,
  deps: {
    connection: Pick<Connection, 'readNoticeSecret' | 'countRefusals'>;
    inventory: Pick<Inventory, 'applyNotice'>;
    clock: Clock;
  },
): Promise<void> {
  const refusals = createRefusalCounter(deps.clock, (count) => deps.connection.countRefusals(count));
  const refuse = (reply: FastifyReply) => {
    refusals.add();
    return reply
      .code(401)
      .type('application/json; charset=utf-8')
      .serializer((body: unknown) => body as string)
      .send(refusal);
  };
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    // For every content type, because the signature covers bytes.
    scope.addContentTypeParser('*', (_request: FastifyRequest, payload: IncomingMessage) =>
      readRawBody(payload, noticeBytesMax),
    );
    scope.post<{ Body: Buffer | undefined }>(
      noticePath,
      {
        onRequest: async (request, reply) => {
          const timestamp = onlyHeader(request, timestampHeader);
          const isFresh = timestamp !== null && isFreshTimestamp(timestamp, nowSeconds(deps.clock));
          if (!isFresh || onlyHeader(request, signatureHeader) === null) return refuse(reply);
        },
        schema: { response: { 200: DestroyNoticeResult } },
      },
      async (request, reply) => {
        const body = request.body ?? Buffer.alloc(0);
        const timestamp = onlyHeader(request, timestampHeader) ?? '';
        const signature = onlyHeader(request, signatureHeader) ?? '';
        const secret = await deps.connection.readNoticeSecret();
        if (secret === null || !verifyNotice(secret, timestamp, signature, body, nowSeconds(deps.clock))) {
          return refuse(reply);
        }
        return deps.inventory.applyNotice(readNotice(body));
      },
    );
  });
}

function nowSeconds(clock: Clock): number {
  return Math.floor(clock.nowMs() / 1000);
}

/** The header's text if it occurs exactly once; Node would join or drop a repeated one. */
function onlyHeader(request: FastifyRequest, name: string): string | null {
  const { rawHeaders } = request.raw;
  let value: string | null = null;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.toLowerCase() !== name) continue;
    if (value !== null) return null;
    value = rawHeaders[i + 1]!;
  }
  return value;
}

/** Parses a verified body. An invalid one is a 422, because sending it again can not help. */
function readNotice(body: Buffer): DestroyNotice {
  let notice: unknown;
  try {
    notice = parseStrictJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch (error) {
    throw unfit(error instanceof SyntaxError ? error.message : 'The body is not UTF-8.');
  }
  if (Notice.Check(notice)) {
    const [path] = findUnkeepableTexts(notice);
    if (path === undefined) return notice;
    throw unfit(`${path}: ${unkeepableText}.`);
  }
  const fault = Notice.Errors(notice)[0];
  const path = fault?.instancePath.replace(/^\//, '').replaceAll('/', '.') || 'body';
  throw unfit(`${path}: ${fault?.message ?? 'is not valid'}.`);
}

function unfit(message: string): HttpError {
  return new HttpError(422, { code: 'validation_failed', reason: 'invalid_notice', message });
}

/**
 * Reads a body up to a limit. Above it the answer is 413 and the connection is closed, so that the rest is not
 * received.
 */
async function readRawBody(payload: Readable, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of payload as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > bytesMax) {
      throw new HttpError(
        413,
        { code: 'payload_too_large', message: `A notice must not hold more than ${bytesMax} bytes.` },
        { connection: 'close' },
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** At most one write in this time, so that a flood of bad signatures does not become a flood of writes. */
const writeEveryMs = 5_000;

/**
 * Counts refusals in memory and writes the sum from time to time. Unwritten counts are lost with the process, which is
 * acceptable for this statistic.
 */
function createRefusalCounter(clock: Clock, write: (count: number) => Promise<void>) {
  let pending = 0;
  let writtenAtMs = Number.NEGATIVE_INFINITY;
  return {
    add() {
      pending += 1;
      if (clock.monotonicMs() - writtenAtMs < writeEveryMs) return;
      writtenAtMs = clock.monotonicMs();
      const count = pending;
      pending = 0;
      write(count).catch(() => {
        pending += count;
      });
    },
  };
}
