/**
 * Conditional requests (RFC 9110, section 13): what an `ETag` is made of, and what `If-None-Match` and `If-Match` compare.
 *
 * A tag is a digest of the representation that a read answers with. A server's and a network's has another one before it, of what callers
 * can change. A read compares both headers with its answer. A change compares the first part of `If-Match` inside its own transaction,
 * with the row locked: of two changes under one tag only the first one happens, and a server that runs by now is still the one that
 * its caller has seen when it was queued.
 */
import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import { schemas } from '#contracts/customer-api/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ShownServer } from './views.ts';

const digestOf = (text: string) => hash('sha1', text, 'base64url');

/** The strong tag of this representation; `changeable` is what `changeablePart` gives for it. */
export function entityTag(payload: string, changeable: string): string {
  return `"${changeable}${digestOf(payload)}"`;
}

/** Networks or servers that a caller has attached; those that are being detached are not any more. */
function attached<T extends { ip: string; state: string }>(all: readonly T[], idOf: (one: T) => number) {
  return all.filter(({ state }) => state !== 'detaching').map((one) => [idOf(one), one.ip]);
}

/** The first part of the tag with its dot; empty for what no call changes under `If-Match`. */
export function changeablePart(schema: TSchema | undefined, shown: unknown): string {
  if (schema === schemas.Server) {
    const { name, hostname, labels, private_networks, firewall, plan, image, public_ips, machine_version } =
      shown as ShownServer;
    const networks = attached(private_networks, ({ network_id }) => network_id);
    const { enabled, rule_count } = firewall;
    const machine = [
      machine_version,
      plan.id,
      plan.disk_gb,
      image.id,
      public_ips.map(({ address }) => address),
    ];
    return `${digestOf(JSON.stringify([name, hostname, labels, networks, enabled, rule_count, machine]))}.`;
  }
  if (schema === schemas.ServerFirewall) {
    const { enabled, policies, rules } = shown as schemas.ServerFirewall;
    return `${digestOf(JSON.stringify([enabled, policies, rules]))}.`;
  }
  if (schema === schemas.Webhook) {
    const { url, description, events, enabled } = shown as schemas.Webhook;
    return `${digestOf(JSON.stringify([url, description, events, enabled]))}.`;
  }
  if (schema === schemas.Address) {
    const { name, state, server_id } = shown as schemas.Address;
    return `${digestOf(JSON.stringify([name, state, server_id]))}.`;
  }
  if (schema === schemas.ReverseDns)
    return `${digestOf(JSON.stringify((shown as schemas.ReverseDns).reverse_dns))}.`;
  if (schema === schemas.SshKey) return `${digestOf(JSON.stringify((shown as schemas.SshKey).name))}.`;
  if (schema !== schemas.Network) return '';
  const { name, description, labels, members } = shown as schemas.Network;
  const servers = attached(members, ({ server_id }) => server_id);
  return `${digestOf(JSON.stringify([name, description, labels, servers]))}.`;
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
function isMatch(list: TagList, isSame: (opaque: string) => boolean): boolean {
  return list.isAny || list.tags.some(({ isWeak, opaque }) => !isWeak && isSame(opaque));
}

export interface Conditions<T> {
  request: FastifyRequest;
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
  schema,
  read,
}: Conditions<T>): ((tx: Queryable) => Promise<void>) | undefined {
  const list = readIfMatch(request);
  if (list === null) return undefined;
  return async (tx) => {
    const found = await read(tx);
    if (found !== null) {
      const part = `"${changeablePart(schema, found)}`;
      if (isMatch(list, (opaque) => opaque.startsWith(part))) return;
    }
    throw new HttpError(412, {
      code: 'precondition_failed',
      reason: 'etag_mismatch',
      message: 'This was changed since you read it, so nothing was done. Read it again and decide anew.',
    });
  };
}

/** The same of a change that hands over the thing as it found it, with its row locked. */
export function preconditionOn<T>(request: FastifyRequest, schema: TSchema, show: (found: T) => unknown) {
  return async (tx: Queryable, found: T): Promise<void> =>
    preconditionOf({ request, schema, read: async () => show(found) })?.(tx);
}

/**
 * The precondition of a read, once its answer is known: what is refused otherwise stays as it is. Throws a 412 unless the
 * answer's tag is one of `If-Match`; an answer without a tag is matched by `*` alone. `If-None-Match` comes after it.
 */
export function requireMatch(request: FastifyRequest, readTag: () => string | null): void {
  const list = readIfMatch(request);
  if (list === null || list.isAny) return;
  const tag = readTag();
  if (tag !== null && isMatch(list, (opaque) => opaque === tag)) return;
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
  const payload = reply.compileSerializationSchema(schema as Json)(shown as Json);
  return entityTag(payload, changeablePart(schema, shown));
}

/** For calls that have nothing to compare: ignored, the header would promise what is not kept. */
export function refuseIfMatch(request: FastifyRequest): void {
  if (request.headers['if-match'] === undefined) return;
  throw invalidIfMatch('If-Match does nothing for this call. Leave it out.');
}

function invalidIfMatch(message: string): HttpError {
  return new HttpError(400, { code: 'bad_request', reason: 'invalid_header', message });
}
