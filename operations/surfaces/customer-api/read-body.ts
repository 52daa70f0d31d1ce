/**
 * Reads a call's body without judging it: what is wrong with it is a value, not an exception, because the call has to
 * pass its account gate and be counted before it hears about its body.
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { HttpError, parseJsonBody } from '#service-kit/http/index.ts';

const bodyBytesMax = 256 * 1024;

/** Stands in `request.body` where the body can't be used. */
export class BodyFault {
  readonly error: HttpError;
  constructor(error: HttpError) {
    this.error = error;
  }
}

/** Notes a foreign media type and lets every body through to our parser, also those of malformed types. */
export function noteMediaType(request: FastifyRequest): void {
  const type = request.headers['content-type'];
  request.hasForeignBody = type === undefined || !/^application\/json\s*(;|$)/i.test(type);
  if (type !== undefined) request.headers['content-type'] = 'application/json';
}

/** Puts our parser in the place of every other one. */
export function useBodyReader(
  scope: Pick<FastifyInstance, 'removeAllContentTypeParsers' | 'addContentTypeParser'>,
): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', async (request: FastifyRequest, payload: IncomingMessage) =>
    readBody(request, payload),
  );
}

async function readBody(request: FastifyRequest, payload: IncomingMessage): Promise<unknown> {
  const declared = Number(request.headers['content-length'] ?? 0);
  const bytes = declared > bodyBytesMax ? null : await collect(payload);
  if (bytes === null) {
    payload.resume();
    return new BodyFault(
      new HttpError(
        413,
        { code: 'payload_too_large', message: `The body is larger than ${bodyBytesMax} bytes.` },
        { connection: 'close' },
      ),
    );
  }
  if (bytes.length === 0) return undefined;
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    const message = 'Send the body as it is, without Content-Encoding.';
    return new BodyFault(new HttpError(415, { code: 'unsupported_media_type', message }));
  }
  if (request.hasForeignBody) {
    const message = 'Send the body as JSON, with Content-Type: application/json.';
    return new BodyFault(new HttpError(415, { code: 'unsupported_media_type', message }));
  }
  try {
    return parseJsonBody(bytes);
  } catch (error) {
    const { message } = error as SyntaxError;
    return new BodyFault(new HttpError(400, { code: 'bad_request', reason: 'invalid_json', message }));
  }
}

/** The whole body, or null as soon as it is too long. */
async function collect(payload: IncomingMessage): Promise<Buffer | null> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of payload.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > bodyBytesMax) return null;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
