/**
 * Conditional requests (RFC 9110, section 13): what an `ETag` is made of, and what `If-None-Match` and `If-Match` compare.
 *
 * A tag is a digest of the representation that a read answers with. A read compares both headers with its answer. A change compares `If-Match` inside its own
 * transaction, with the row locked: of two changes under one tag only the first one happens.
 */
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import { HttpError } from '#service-kit/http/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** The strong tag of this representation. */
export function entityTag(payload: string): string {
  return `"${createHash('sha1').update(payload).digest('base64url')}"`;
}

interface TagList {
  /** `*`: any version. */
  isAny: boolean;
  tags: { isWeak: boolean; opaque: string }[];
}

const entityTagPattern = /\s*(?:(W\/)?("[\x21\x23-\x7e\x80-\xff]*"))?\s*(?:,|$)/y;

/** `*`, or tags separated by commas; null for anything else. A comma may be part of a tag. */
export function parseTags(header: string): TagList | null {
  if (header.trim() === '*') return { isAny: true, tags: [] };
  const tags: TagList['tags'] = [];
  for (let at = 0; at < header.length; at = entityTagPattern.lastIndex) {
    entityTagPattern.lastIndex = at;
    const match = entityTagPattern.exec(header);
    if (match === null) return null;
    if (match[2] !== undefined) tags.push({ isWeak: match[1] !== undefined, opaque: match[2] });
  }
  return tags.length === 0 ? null : { isAny: false, tags };
}

/** `If-None-Match` compares weakly: a proxy that compresses answers makes tags weak. */
export function isKnown(header: string | undefined, tag: string): boolean {
  const list = header === undefined ? null : parseTags(header);
  return list !== null && (list.isAny || list.tags.some(({ opaque }) => opaque === tag));
}

/** `If-Match` compares strongly: a weak tag never matches. */
function isMatch(list: TagList, tag: string): boolean {
  return list.isAny || list.tags.some(({ isWeak, opaque }) => !isWeak && opaque === tag);
}

export interface Conditions<T> {
  request: FastifyRequest;
  reply: FastifyReply;
  /** The schema with which reads answer. */
  schema: TSchema;
  /** What a read would answer now; null when there is nothing. */
  read(tx: Queryable): Promise<T | null>;
}

/**
 * The precondition of a change: undefined without `If-Match`. Throws a 400 for a header that is none; what it returns
 * throws a 412 in the transaction of the change.
 */
export function preconditionOf<T>({
  request,
  reply,
  schema,
  read,
}: Conditions<T>): ((tx: Queryable) => Promise<void>) | undefined {
  const list = readIfMatch(request);
  if (list === null) return undefined;
  return async (tx) => {
    const found = await read(tx);
    if (found !== null && isMatch(list, tagOf(reply, schema, found))) return;
    throw new HttpError(412, {
      code: 'precondition_failed',
      reason: 'etag_mismatch',
      message: 'This was changed since you read it, so nothing was done. Read it again and decide anew.',
    });
  };
}

/**
 * The precondition of a read, once its answer is known: what is refused otherwise stays as it is. Throws a 412 unless the
 * answer's tag is one of `If-Match`; an answer without a tag is matched by `*` alone. `If-None-Match` comes after it.
 */
export function requireMatch(request: FastifyRequest, readTag: () => string | null): void {
  const list = readIfMatch(request);
  if (list === null || list.isAny) return;
  const tag = readTag();
  if (tag !== null && isMatch(list, tag)) return;
  throw new HttpError(412, {
    code: 'precondition_failed',
    reason: 'etag_mismatch',
    message: 'This is not the version that If-Match names. Leave If-Match out to read what is there now.',
  });
}

/** Null without the header; throws a 400 for one that is none. */
function readIfMatch(request: FastifyRequest): TagList | null {
  const header = request.headers['if-match'];
  if (header === undefined) return null;
  const list = parseTags(header);
  if (list !== null) return list;
  throw invalidIfMatch('If-Match must be * or tags as they stand in ETag, with their quotes.');
}

type Json = Record<string, unknown>;

/** The tag that a read of this would carry. */
export function tagOf(reply: FastifyReply, schema: TSchema, shown: unknown): string {
  return entityTag(reply.compileSerializationSchema(schema as Json)(shown as Json));
}

/** For calls that have nothing to compare: ignored, the header would promise what is not kept. */
export function refuseIfMatch(request: FastifyRequest): void {
  if (request.headers['if-match'] === undefined) return;
  throw invalidIfMatch('If-Match does nothing for this call. Leave it out.');
}

function invalidIfMatch(message: string): HttpError {
  return new HttpError(400, { code: 'bad_request', reason: 'invalid_header', message });
}
