/** The query of the server list, and the cursors that it hands out. */
import type { FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import { parseLabelSelector } from '#operations/servers/index.ts';
import type { ListOrder, ServerFilter } from '#operations/views/server-list-store.ts';
import { invalidCursor, isDay, queryReader } from './request-parts.ts';
import { invalidFields } from './validate-input.ts';

const readQuery = queryReader(schemas.ListServersQuery);
const limitDefault = 50;
/** RFC 3339, or a UTC day. A moment without its offset would be read as the server's local time. */
const momentPattern = /^\d{4}-\d{2}-\d{2}($|T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$)/i;

const orders: Record<NonNullable<schemas.ListServersQuery['sort']>, ListOrder> = {
  '-created_at': 'newest',
  created_at: 'oldest',
  name: 'name',
  '-name': '-name',
};

export function readListQuery(request: FastifyRequest): ServerFilter {
  const given = request.query as Readonly<Record<string, unknown>>;
  // Said before the schema does, because these say what would be right.
  if (typeof given.status === 'string') statusesOf(given.status);
  if (typeof given.created_after === 'string') momentOf(given.created_after);
  const query = readQuery(request);
  const order = orders[query.sort ?? '-created_at'];
  return {
    order,
    limit: query.limit ?? limitDefault,
    ...(query.name === undefined ? {} : { name: query.name }),
    ...(query.plan === undefined ? {} : { plan: query.plan }),
    ...(query.location === undefined ? {} : { location: query.location }),
    ...(query.network_id === undefined ? {} : { networkId: query.network_id }),
    ...(query.status === undefined ? {} : { statuses: statusesOf(query.status) }),
    ...(query.label === undefined ? {} : { labels: labelsOf(query.label) }),
    ...(query.created_after === undefined ? {} : { createdAfter: momentOf(query.created_after) }),
    ...(query.cursor === undefined ? {} : { after: readCursor(query.cursor, order) }),
  };
}

function statusesOf(text: string): string[] {
  const statuses = text.split(',').map((one) => one.trim());
  const allowed: readonly string[] = schemas.serverStatuses;
  if (statuses.every((one) => allowed.includes(one))) return statuses;
  throw invalidFields([
    { path: 'status', code: 'unknown_value', message: 'There is no such status.', allowed: [...allowed] },
  ]);
}

/** The terms of a label selector; the same on every list. */
export function labelsOf(text: string): NonNullable<ServerFilter['labels']> {
  const terms = parseLabelSelector(text);
  if (terms !== null) return terms;
  const message = 'must be terms such as env=prod, tier!=test, owner or !old, separated by commas';
  throw invalidFields([{ path: 'label', code: 'format', message }]);
}

function momentOf(text: string): Date {
  const moment = momentPattern.test(text) && isDay(text.slice(0, 10)) ? new Date(text) : null;
  if (moment !== null && !Number.isNaN(moment.getTime())) return moment;
  throw invalidFields([
    { path: 'created_after', code: 'format', message: 'must be RFC 3339, such as 2026-11-21T10:00:00Z' },
  ]);
}

/** Opaque to callers: the order that the list had, and where its page ended. */
export function writeCursor(order: ListOrder, last: { id: number; name: string }): string {
  return Buffer.from(JSON.stringify([order, last.id, last.name])).toString('base64url');
}

function readCursor(cursor: string, order: ListOrder): { id: number; name: string } {
  try {
    const [given, id, name] = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as unknown[];
    if (given === order && Number.isSafeInteger(id) && typeof name === 'string' && !name.includes('\0'))
      return { id: id as number, name };
  } catch {
    // Not one of ours.
  }
  throw invalidCursor();
}
