/** What the handlers read of a request in the same way. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import { schemas } from '#contracts/customer-api/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import { type Call, notFound } from './call.ts';
import { compileValidator, convertQuery, invalidFields } from './validate-input.ts';

/** The body as an object; v1 has no `tenant` field and ignores any value of it. */
export function bodyOf(call: Call, request: FastifyRequest): unknown {
  // `null` is a body, and none that fits; only an absent one stands for an empty object.
  const body = request.body === undefined ? {} : request.body;
  if (call.version !== 'v1' || typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const { tenant: _, ...rest } = body as Record<string, unknown>;
  return rest;
}

/** Reads bodies that fit the schema, and throws the 422 for others. */
export function bodyReader<Schema extends TSchema>(schema: Schema) {
  const check = compileValidator(schema);
  return (call: Call, request: FastifyRequest) => check(bodyOf(call, request));
}

/** The body of a call that names nothing but its workspace. */
export const readSelection = bodyReader(schemas.SelectionRequest);

/** Reads queries that fit the schema, without the workspace that they may name, and throws the 422 for others. */
export function queryReader<Schema extends TSchema>(schema: Schema) {
  const check = compileValidator(schema);
  return (request: FastifyRequest) => {
    const { tenant: _, ...rest } = request.query as Record<string, unknown>;
    return check(convertQuery(schema, rest));
  };
}

/** The id in the path; what can't be an id is an id that nothing has. */
export function idOf(request: FastifyRequest, name = 'id'): number {
  const text = (request.params as Record<string, string>)[name] ?? '';
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(id)) throw notFound();
  return id;
}

/** Where the caller reached the API, such as `https://my.example.com`; empty where it did not say. */
export function baseUrl({ protocol, host }: FastifyRequest): string {
  return URL.parse(`${protocol}://${host}`)?.origin ?? '';
}

/** Adds the next page to what `Link` says already; the request's filters stay as they were. */
function linkNextPage(request: FastifyRequest, reply: FastifyReply, cursor: string): void {
  const url = new URL(request.url, 'http://here');
  url.searchParams.set('cursor', cursor);
  const link = `<${baseUrl(request)}${url.pathname}${url.search}>; rel="next"`;
  const before = reply.getHeader('link');
  reply.header('link', before === undefined ? link : `${String(before)}, ${link}`);
}

const checkPage = compileValidator(schemas.ShortListQuery);

/**
 * The page that the query asks for, of a list that is read as a whole; the cursor names the item before it. `filters` are the
 * parameters that the caller reads itself.
 */
export function pageOf<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  items: readonly T[],
  idOf: (one: T) => number | string,
  filters: readonly string[] = [],
) {
  const paging = Object.entries(request.query as Record<string, unknown>).filter(
    ([name]) => name !== 'tenant' && !filters.includes(name),
  );
  const query = convertQuery(schemas.ShortListQuery, Object.fromEntries(paging));
  const { limit = 200, cursor } = checkPage(query);
  const cursorOf = (one: T) => Buffer.from(`after:${idOf(one)}`).toString('base64url');
  const start = cursor === undefined ? 0 : items.findIndex((one) => cursorOf(one) === cursor) + 1;
  if (cursor !== undefined && start === 0) throw invalidCursor();
  const page = items.slice(start, start + limit);
  const next = start + limit < items.length ? cursorOf(page.at(-1)!) : null;
  if (next !== null) linkNextPage(request, reply, next);
  return { page, pagination: { limit, total: items.length, has_more: next !== null, next_cursor: next } };
}

/** A page of a list that is read page by page: `found` has one more than the page where there is another one behind it. */
export function pageOfFound<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  found: readonly T[],
  { limit, total, cursorOf }: { limit: number; total: number; cursorOf: (last: T) => string },
) {
  const page = found.slice(0, limit);
  const next = found.length > limit ? cursorOf(page.at(-1)!) : null;
  if (next !== null) linkNextPage(request, reply, next);
  return { page, pagination: { limit, total, has_more: next !== null, next_cursor: next } };
}

/** Cursors of a list that is read page by page: opaque to callers, the last id of the page. */
export function cursorsOf(list: string) {
  const pattern = new RegExp(`^${list}:([1-9]\\d{0,14})$`);
  return {
    write: (id: number) => Buffer.from(`${list}:${id}`).toString('base64url'),
    read(cursor: string): number {
      const match = pattern.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
      if (match === null) throw invalidCursor();
      return Number(match[1]);
    },
  };
}

/** The 400 for a cursor that this list has not given out. */
export function invalidCursor(): HttpError {
  return new HttpError(400, {
    code: 'bad_request',
    reason: 'invalid_cursor',
    message: 'The cursor is not one of this list. Start again without it.',
  });
}

/** Whether the calendar has this day: `new Date` turns 30 February into 2 March. */
export function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

/** Milliseconds of a text that fits the contract's `momentPattern`; throws the 422 for a day that the calendar does not have. */
export function readMoment(path: string, text: string): number {
  const ms = isDay(text.slice(0, 10)) ? Date.parse(text.toUpperCase()) : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  throw invalidFields([{ path, code: 'format', message: 'is a day that the calendar does not have' }]);
}
