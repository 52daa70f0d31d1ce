/**
 * Pages and answers of the customer API leave compressed where the caller takes it: a page of tables is a fifth of its size as
 * gzip.
 *
 * Pages hold what a stranger can choose (a search, a name) beside a secret, the token of forms. So that the size of an
 * answer tells nothing of the token, it is written masked, anew in each form (`service-kit/sessions/token-mask.ts`).
 */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

const compress = promisify(gzip);

/** Below a packet's size nothing is won. */
const leastBytes = 1_400;

/** A hook of `onSend`: compresses HTML answers. Other types are files, streams, or small. */
export async function compressPage(
  request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
): Promise<unknown> {
  if (!String(reply.getHeader('content-type') ?? '').startsWith('text/html')) return payload;
  if (typeof payload === 'string' && payload.length >= leastBytes) reply.header('vary', 'accept-encoding');
  return compressAnswer(request, reply, payload);
}

/** Compresses a text. Its `Vary` must name `Accept-Encoding`. */
export async function compressAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
): Promise<unknown> {
  if (typeof payload !== 'string' || payload.length < leastBytes) return payload;
  if (reply.hasHeader('content-encoding') || !acceptsGzip(request.headers['accept-encoding'])) return payload;
  reply.header('content-encoding', 'gzip');
  reply.removeHeader('content-length');
  return compress(payload, { level: 5 });
}

/** `gzip` or `*` without a weight of zero (RFC 9110, 12.5.3). */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  const codings = String(header ?? '')
    .toLowerCase()
    .split(',')
    .map((part) => {
      const [name = '', ...parameters] = part.split(';').map((text) => text.trim());
      const weight = parameters.find((text) => /^q\s*=/.test(text))?.split('=')[1];
      return { name, isRefused: weight !== undefined && Number(weight) === 0 };
    });
  const coding = codings.find(({ name }) => name === 'gzip') ?? codings.find(({ name }) => name === '*');
  return coding !== undefined && !coding.isRefused;
}

/**
 * Which of the offered media types the caller would rather have (RFC 9110, 12.5.1): the most specific range that fits a type gives its
 * weight. A tie gives the first one; so does an `Accept` that takes none of them: an answer in the usual type is better than none.
 */
export function preferredType(accept: string | undefined, offered: readonly [string, ...string[]]): string {
  let best = { type: offered[0], weight: 0 };
  const weights = readWeights(accept ?? '');
  for (const type of offered) {
    const ranges = [type, `${type.split('/', 1)[0]}/*`, '*/*'];
    const weight = ranges.map((range) => weights.get(range)).find((one) => one !== undefined) ?? 0;
    if (weight > best.weight) best = { type, weight };
  }
  return best.type;
}

function readWeights(accept: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const part of accept.split(',')) {
    const [type = '', ...parameters] = part.split(';').map((one) => one.trim().toLowerCase());
    const quality = parameters.find((one) => one.startsWith('q='))?.slice(2) ?? '1';
    weights.set(type, Number(quality) || 0);
  }
  return weights;
}
