/** The client of a ClickHouse server by its URL, and what is wrong where it can't be used. */
import { createRequire } from 'node:module';
import type * as ClickHouse from '@clickhouse/client';
import { CodedError, hasCode } from '#common/errors/index.ts';
import { isServerError } from './engine-store.ts';

/** A little longer than any statement may take. */
const requestMs = 70_000;

/** Where the facts are; the password is in it. */
export interface FactsPlace {
  /** Such as `http://127.0.0.1:8123`, without user and password. */
  origin: string;
  user: string;
  password: string;
  database: string;
}

/** Reads `clickhouse://user:password@host:8123/database`, or the same with http or https. Throws what is wrong, without the URL. */
export function parseFactsUrl(text: string): FactsPlace {
  const url = URL.parse(text);
  const protocol = url === null ? undefined : protocols[url.protocol];
  const database = url?.pathname.replace(/^\//, '') ?? '';
  // An unknown protocol's URL has no default port and may have no host.
  if (!url || protocol === undefined || url.hostname === '' || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(database))
    throw new Error('must be a URL such as clickhouse://user:password@host:8123/database or https://…');
  if (url.search !== '' || url.hash !== '') throw new Error('must end with the name of the database');
  const port = url.port === '' ? { http: 8123, https: 8443 }[protocol] : url.port;
  return {
    origin: `${protocol}://${url.hostname}:${port}`,
    user: decodeURIComponent(url.username) || 'default',
    password: decodeURIComponent(url.password),
    database,
  };
}

/** For messages. */
export const placeText = ({ origin, database }: FactsPlace): string =>
  `ClickHouse at ${origin}, database ${database}`;

const protocols: Readonly<Record<string, 'http' | 'https'>> = {
  'clickhouse:': 'http',
  'http:': 'http',
  'https:': 'https',
};

export function createFactClient({ origin, user, password, database }: FactsPlace) {
  // Loaded where facts are in ClickHouse.
  const { createClient, ClickHouseLogLevel } = createRequire(import.meta.url)(
    '@clickhouse/client',
  ) as typeof ClickHouse;
  return createClient({
    ...{ url: origin, username: user, password, database },
    application: 'svc-monitor',
    request_timeout: requestMs,
    // Lists of addresses may be longer than a URL.
    use_multipart_params_auto: true,
    // What fails is thrown; the client's own log would repeat statements.
    log: { level: ClickHouseLogLevel.OFF },
  });
}

/** ClickHouse's codes of a wrong user or password, and of a database that is not there. */
const refusals = new Set(['192', '193', '194', '516']);
const unknownDatabase = '81';

/** Says of a failure at the start what is wrong with the server or the setting; the cause holds no password. */
export function describeStart(
  error: unknown,
  { origin, user, database }: FactsPlace,
  setting = 'SVC_FACTS_URL',
): unknown {
  const fault = (message: string, from: unknown) =>
    new CodedError('facts.unavailable', `${message} Check ${setting}.`, {}, from);
  const cause = hasCode(error, 'facts.unavailable') ? (error as CodedError).cause : error;
  if (!isServerError(cause)) {
    if (!hasCode(error, 'facts.unavailable')) return error;
    const why = (cause as { code?: string; message?: string } | undefined) ?? {};
    return fault(`ClickHouse at ${origin} does not answer: ${why.code ?? why.message}.`, cause);
  }
  if (refusals.has(cause.code))
    return fault(`ClickHouse at ${origin} refuses the user ${user} or the password.`, cause);
  if (cause.code === unknownDatabase)
    return fault(`ClickHouse at ${origin} has no database ${database}: create it first.`, cause);
  return fault(`ClickHouse at ${origin} can't be used: ${cause.message.slice(0, 300)}`, cause);
}
