import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import formbody from '@fastify/formbody';
import { type TypeBoxTypeProvider, TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox';
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify';
import { CodedError } from '#common/errors/index.ts';
import { parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { PAGE_HEADERS } from '#service-kit/pages/send-page.ts';
import { isConnectionFailure, isLockTimeout } from '#service-kit/postgres/queryable.ts';
import { type ErrorFields, errorBody, HttpError, problemBody } from './errors.ts';
import { compressPage, preferredType } from './negotiate.ts';
import { createHostGuard, type HostRules, newRequestId, sourceBucket } from './origin.ts';
import { parseJsonBody } from './strict-json.ts';

export type App = FastifyInstance<Server, IncomingMessage, ServerResponse, never, TypeBoxTypeProvider>;

/** Schema of a route that is no part of the API reference. */
export const hidden = { hide: true } as object;

export interface HttpServerOptions {
  host: string;
  port: number;
  /** Name of the port's setting, for the message when it is taken. */
  portSetting: string;
  reporter: Reporter;
  /** Addresses and prefixes of reverse proxies: what one of them says of its client's address is believed. */
  trustedProxies?: readonly string[];
  /** Host names that it answers under, beside addresses and `localhost`; absent: none. */
  hosts?: HostRules;
  /** Served by https, here or by a proxy: browsers are told to use nothing else (HSTS). */
  isHttps?: boolean;
  /** Connections that one client may hold at a time, an IPv4 address or a /64 of IPv6; trusted proxies hold any number. */
  connectionsPerAddressMax?: number;
  /** Connections in all. */
  connectionsMax?: number;
  /** For the headers of a request, from its first byte on. */
  headersMs?: number;
  /** Registers everything that is served. */
  routes: (app: App) => Promise<void> | void;
  /** Takes over connections that ask to become WebSockets at this path; elsewhere the wish to upgrade is ignored. */
  webSockets?: WebSockets;
  /** Draws an error as a page where a person asked (`Accept: text/html`, and not an API path); null for JSON. */
  errorPage?: (request: FastifyRequest, status: number, fields: ErrorFields) => string | null;
}

export interface WebSockets {
  /** Authentication is theirs, as the Host and the hooks of requests are not looked at: a credential has to be in the request. */
  path: string;
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Ends all that are open. */
  close(): void;
}

export type HttpServer = Awaited<ReturnType<typeof createHttpServer>>;

const bodyBytesMax = 256 * 1024;
const slowMs = 1_000;
const headersMsDefault = 15_000;
const checkConnectionsMs = 2_500;
const connectionsMaxDefault = 8_192;
const connectionsPerAddressMax = 1_024;
const hstsSeconds = 31_536_000;
const problemType = 'application/problem+json';
/** Of every answer that says nothing else: it is kept nowhere, and is what its type says. */
const usualHeaders = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

export async function createHttpServer(options: HttpServerOptions) {
  const app = makeApp(options);
  const routes: { method: string; url: string }[] = [];
  app.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) routes.push({ method: one, url });
  });
  await app.register(formbody, { bodyLimit: bodyBytesMax });
  await options.routes(app);
  let url = '';
  return {
    name: 'http',
    app,
    /** Everything that it answers, for lists that must leave no route out. */
    routes,
    /** `http://host:port`, valid after `start` (with the real port when 0 was asked for). */
    get url(): string {
      return url;
    },
    async start() {
      try {
        url = (await app.listen({ host: options.host, port: options.port })).replace(/\/$/, '');
      } catch (error) {
        throw listenFailure(error, options);
      }
    },
    async stop() {
      await app.close();
    },
  };
}

function makeApp(options: HttpServerOptions): App {
  const app = Fastify({
    bodyLimit: bodyBytesMax,
    genReqId: () => newRequestId(),
    forceCloseConnections: 'idle',
    requestTimeout: 60_000,
    http: {
      headersTimeout: options.headersMs ?? headersMsDefault,
      connectionsCheckingInterval: checkConnectionsMs,
      // Node's own refusal has no body.
      requireHostHeader: false,
      shouldUpgradeCallback: ({ url, headers }) =>
        url?.split('?', 1)[0] === options.webSockets?.path && headers.upgrade?.toLowerCase() === 'websocket',
    },
    connectionTimeout: 65_000,
    // A parameter is as long as a request line may be: what it can't be is for its route to say.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 16_384 },
    clientErrorHandler: (error, socket) => refuseUnreadable(error, socket),
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id).headers(usualHeaders);
      const { status, fields } = translate(error);
      return answer(options, request, reply as unknown as FastifyReply, status, fields);
    },
    logger: false,
    schemaController: { compilersFactory: lazyCompilers },
    // Of `X-Forwarded-For` the last address that is not a trusted proxy counts: a client can forge the entries before it.
    trustProxy: options.trustedProxies?.length ? [...options.trustedProxies] : false,
    // A request object survives its reply only in this mode; nothing of ours needs that.
    return503OnClosing: true,
  }).withTypeProvider<TypeBoxTypeProvider>() as unknown as App;
  app.removeContentTypeParser('application/json');
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    if (body.length === 0) return done(null, undefined);
    try {
      done(null, parseJsonBody(body as Buffer));
    } catch (error) {
      const message = (error as Error).message;
      done(new HttpError(400, { code: 'bad_request', reason: 'invalid_json', message }), undefined);
    }
  });
  // An expectation that we don't know is not met and not refused either: the request is answered as any other.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  limitConnections(app, options);
  const { webSockets } = options;
  if (webSockets) {
    app.server.on('upgrade', (request, socket, head) => webSockets.accept(request, socket, head));
    app.addHook('preClose', async () => webSockets.close());
  }
  const guardHost = createHostGuard(options.host, options.hosts);
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id).headers(usualHeaders);
    if (options.isHttps) reply.header('strict-transport-security', `max-age=${hstsSeconds}`);
    // Two names leave it open which site was asked: a proxy in front may have judged the other one (RFC 9112, 3.2).
    const hosts = countHeader(request.raw.rawHeaders, 'host');
    if (hosts > 1 || (hosts === 0 && request.raw.httpVersion === '1.1')) {
      const message = `The request has ${hosts > 1 ? 'more than one' : 'no'} Host header.`;
      throw new HttpError(400, { code: 'bad_request', message });
    }
    guardHost(request);
  });
  app.addHook('onSend', compressPage);
  const logRefusal = createRefusalLog(options.reporter);
  app.addHook('onResponse', async (request, reply) => logRefusal(request, reply));
  app.addHook('onResponse', async (request, reply) => {
    if (reply.elapsedTime < slowMs || waitingAnswers.has(reply)) return;
    options.reporter.warn('slow request', describe(request, reply));
  });
  app.setNotFoundHandler((request, reply) =>
    answer(options, request, reply, 404, { code: 'not_found', message: 'There is nothing at this path.' }),
  );
  app.setErrorHandler((error: FastifyError | HttpError, request, reply) => {
    const { status, fields, headers } = translate(error, request.routeOptions.bodyLimit);
    for (const [name, value] of Object.entries(headers)) reply.header(name, value);
    if (status >= 500) {
      options.reporter.error('request failed', {
        ...describe(request, reply),
        status,
        error: error.message,
        stack: status === 500 ? error.stack : undefined,
      });
    }
    return answer(options, request, reply, status, fields);
  });
  return app;
}

function countHeader(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.length === name.length && rawHeaders[at]!.toLowerCase() === name) count += 1;
  return count;
}

/** One client that opens connections and says nothing must not take those of all others. */
function limitConnections(app: App, options: HttpServerOptions): void {
  const perAddress = options.connectionsPerAddressMax ?? connectionsPerAddressMax;
  const held = new Map<string, number>();
  const proxies = (options.trustedProxies ?? [])
    .map((text) => parsePrefix(text))
    .filter((one) => one !== null);
  const isProxy = (address: string) => {
    const bytes = parseAddress(address.replace(/^::ffff:/, ''));
    return bytes !== null && proxies.some((prefix) => prefixContains(prefix, bytes));
  };
  app.server.maxConnections = options.connectionsMax ?? connectionsMaxDefault;
  app.server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    if (isProxy(address)) return;
    // A host of IPv6 has as many addresses as it wants, all in its /64.
    const source = sourceBucket(address);
    const count = (held.get(source) ?? 0) + 1;
    held.set(source, count);
    socket.once('close', () => {
      const left = held.get(source)! - 1;
      if (left === 0) held.delete(source);
      else held.set(source, left);
    });
    if (count > perAddress) socket.destroy();
  });
}

/** Answers what could not be read as a request at all; by hand, because there is no reply for it. */
function refuseUnreadable(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const [status, message] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? [431, 'The headers are larger than 16 KiB together.']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [408, 'The request took too long to arrive: 15 seconds for its headers, a minute for all of it.']
        : [400, 'This is not a request that can be read as HTTP.'];
  const requestId = newRequestId();
  const body = JSON.stringify(errorBody({ code: 'bad_request', message }, requestId));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `X-Request-Id: ${requestId}`,
    ...Object.entries(usualHeaders).map((header) => header.join(': ')),
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  if (socket.writable) socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
  else socket.destroy();
}

function answer(
  options: HttpServerOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  fields: ErrorFields,
): FastifyReply {
  reply.code(status);
  refusalCodes.set(request, fields.reason ?? fields.code);
  const wantsPage = (request.headers.accept ?? '').includes('text/html');
  const page = wantsPage ? (options.errorPage?.(request, status, fields) ?? null) : null;
  if (page !== null) return reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(page);
  const isProblem = preferredType(request.headers.accept, ['application/json', problemType]) === problemType;
  const body = isProblem ? problemBody(fields, status, request.id) : errorBody(fields, request.id);
  // Serialised here: a route's response schema must not be able to drop a member of the error.
  return reply
    .type(isProblem ? problemType : 'application/json; charset=utf-8')
    .serializer((text: unknown) => text as string)
    .send(JSON.stringify(body));
}

/** What a thrown value means to the caller. Anything unknown is a 500 without a word about its inside. */
function translate(error: FastifyError | HttpError, bodyLimit = bodyBytesMax) {
  if (error instanceof HttpError)
    return { status: error.status, fields: error.fields, headers: error.headers };
  const as = (status: number, fields: ErrorFields, headers: Record<string, string> = {}) => ({
    status,
    fields,
    headers,
  });
  if ('validation' in error && error.validation) {
    return as(422, {
      code: 'validation_failed',
      reason: 'invalid_fields',
      message: 'Some fields are not as they must be.',
      fields: error.validation.map((fault) => ({
        path: fault.instancePath.replace(/^\//, '').replaceAll('/', '.'),
        code: fault.keyword,
        message: fault.message ?? 'is not valid',
      })),
    });
  }
  if (isConnectionFailure(error) || isLockTimeout(error)) {
    const message = 'The service can not reach its database right now. Try again in a moment.';
    return as(503, { code: 'unavailable', message, retryable: true }, { 'retry-after': '2' });
  }
  switch (error.code) {
    // PostgreSQL keeps no U+0000. Surfaces that name fields find it first; everywhere else this is what is said.
    case '22021':
    case '22P05':
      return as(422, {
        code: 'validation_failed',
        reason: 'invalid_fields',
        message: 'A text of the request has a character that can not be kept, such as U+0000. Leave it out.',
      });
    // An id or a number that no column holds, such as 9999999999999999999999 in a path.
    case '22003':
      return as(422, {
        code: 'validation_failed',
        reason: 'invalid_fields',
        message: 'A number of the request is larger than any id or amount here.',
      });
    case 'FST_ERR_BAD_URL':
      return as(400, {
        code: 'bad_request',
        message: 'The path has a % that is not followed by two digits.',
      });
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return as(413, { code: 'payload_too_large', message: `The body is larger than ${bodyLimit} bytes.` });
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return as(415, {
        code: 'unsupported_media_type',
        message: 'Send the body as Content-Type: application/json.',
      });
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return as(400, { code: 'bad_request', message: 'Content-Length does not fit the body.' });
  }
  // Libraries put the status of an answer that they were given there too; only the server's own is the caller's.
  const status = error.code?.startsWith('FST_') ? (error.statusCode ?? 500) : 500;
  if (status >= 400 && status < 500)
    return as(status, { code: 'bad_request', message: 'The request is malformed.' });
  return as(500, {
    code: 'internal_error',
    message: 'Something went wrong on our side. It has been recorded.',
  });
}

function describe(request: FastifyRequest, reply: FastifyReply): Record<string, unknown> {
  return {
    request_id: request.id,
    method: request.method,
    route: request.routeOptions.url ?? 'none',
    ms: Math.round(reply.elapsedTime),
  };
}

function listenFailure(error: unknown, options: HttpServerOptions): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'EADDRINUSE') {
    return new CodedError(
      'http.port_taken',
      `Port ${options.port} on ${options.host} is taken by another process. Stop it, or set ${options.portSetting} to a free port.`,
    );
  }
  if (code === 'EACCES' || code === 'EADDRNOTAVAIL') {
    return new CodedError(
      'http.port_refused',
      `Can't listen on ${options.host}:${options.port} (${code}). Set ${options.portSetting}.`,
    );
  }
  return error;
}

/** The error code of a request that was answered with one. */
const refusalCodes = new WeakMap<FastifyRequest, string>();

const phrases: Readonly<Record<number, string>> = {
  401: 'not authenticated',
  403: 'refused by permission',
  421: 'host name not accepted',
  429: 'throttled',
};
const windowMs = 60_000;
const linesPerSource = 20;
const sourcesMax = 10_000;

/**
 * Logs who was refused, where and why: failed sign-ins and keys, missing permissions, foreign host names, throttling. Nothing of a body, a
 * cookie or a credential is in a line. A source gets so many lines a minute; what is left out is counted and told with
 * its next line, so that an attack does not fill the disk and is still seen.
 */
function createRefusalLog(reporter: Reporter): (request: FastifyRequest, reply: FastifyReply) => void {
  const sources = new Map<string, { fromMs: number; lines: number; left: number }>();
  return (request, reply) => {
    const phrase = phrases[reply.statusCode];
    if (phrase === undefined) return;
    const now = Date.now();
    let source = sources.get(request.ip);
    if (!source || now - source.fromMs >= windowMs) {
      source = { fromMs: now, lines: 0, left: source?.left ?? 0 };
      sources.delete(request.ip);
      sources.set(request.ip, source);
      if (sources.size > sourcesMax) sources.delete(sources.keys().next().value!);
    }
    if (source.lines >= linesPerSource) {
      source.left += 1;
      return;
    }
    source.lines += 1;
    reporter.warn(phrase, {
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      code: refusalCodes.get(request),
      address: request.ip,
      host: reply.statusCode === 421 ? request.headers.host?.slice(0, 253) : undefined,
      request_id: request.id,
      not_logged: source.left || undefined,
    });
    source.left = 0;
  };
}

/** Answers that wait for something because their callers want it: they are not slow. */
export const waitingAnswers = new WeakSet<FastifyReply>();

/**
 * Calls `end` once, when the answer has been sent or the caller has gone, also where that has happened by now: the hooks before
 * may have waited for the database, and what a request holds has to be given back.
 */
export function onClosed({ raw }: FastifyReply, end: () => void): void {
  if (raw.closed) end();
  else raw.once('close', end);
}

// How schemas become functions: each when the first request needs it.
//
// Compiling all of a program's schemas takes longer than the rest of its start, and most starts, those of commands and of
// tests above all, serve few of its routes. What is served stays the same: what no schema names can't leave.

type SchemaController = NonNullable<FastifyServerOptions['schemaController']>;
type Compilers = NonNullable<SchemaController['compilersFactory']>;
type BuildSerializer = NonNullable<Compilers['buildSerializer']>;
type CompileInput = typeof TypeBoxValidatorCompiler;

/** Fastify's own compiler of answers, as fastify itself finds it. */
const loadUsual = () => {
  const find = createRequire(import.meta.resolve('fastify'));
  return find('@fastify/fast-json-stringify-compiler')() as BuildSerializer;
};

type CheckInput = ReturnType<CompileInput>;
type Serialize = ReturnType<ReturnType<BuildSerializer>>;

/**
 * What a schema became, for every server of this process: a schema is a constant, and tests make hundreds of servers.
 * Bodies are told from other inputs, because only the others are converted.
 */
const checksOfBodies = new WeakMap<object, CheckInput>();
const checksOfTexts = new WeakMap<object, CheckInput>();
const serializers = new WeakMap<object, Serialize>();

function keepIn<Made>(made: WeakMap<object, Made>, schema: unknown, make: () => Made): Made {
  if (schema === null || typeof schema !== 'object') return make();
  const known = made.get(schema) ?? make();
  made.set(schema, known);
  return known;
}

/** Parameters that are whole numbers: the compiler would cut `1.5` to 1. */
function integersOf(schema: unknown): string[] {
  const { properties = {} } = schema as { properties?: Record<string, { type?: string }> };
  return Object.entries(properties).flatMap(([name, { type }]) => (type === 'integer' ? [name] : []));
}

const isText = (value: unknown) => typeof value === 'string';

/** As the compiler words a fault. */
const notWhole = (name: string) => ({
  ...{
    keyword: 'type',
    schemaPath: `#/properties/${name}`,
    instancePath: `/${name}`,
    params: { type: 'integer' },
  },
  message: 'must be integer',
});

const compileInput: CompileInput = (route) => {
  let check: CheckInput | null = null;
  const made = route.httpPart === 'body' ? checksOfBodies : checksOfTexts;
  const integers = route.httpPart === 'body' ? [] : integersOf(route.schema);
  return (value) => {
    check ??= keepIn(made, route.schema, () => TypeBoxValidatorCompiler(route));
    const wrong = integers.find((name) => isText(value?.[name]) && !/^[+-]?\d+$/.test(value[name]));
    return wrong === undefined ? check(value) : { error: [notWhole(wrong)] };
  };
};

/**
 * Of "this or null" the usual compiler checks each value against both schemas; the word `nullable` it takes as it is meant, and
 * writes the same text in half of the time.
 */
function withNullable(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withNullable);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { anyOf, ...rest } = schema as { anyOf?: { type?: string }[] };
  if (anyOf?.length === 2 && anyOf[1]!.type === 'null' && anyOf[0]!.type !== undefined)
    return withNullable({ ...rest, ...anyOf[0], nullable: true });
  return Object.fromEntries(Object.entries(schema).map(([name, member]) => [name, withNullable(member)]));
}

/** For fastify's option `schemaController.compilersFactory`. */
const lazyCompilers: Compilers = {
  // Its type knows no compiler but ajv's.
  buildValidator: (() => compileInput) as unknown as NonNullable<Compilers['buildValidator']>,
  buildSerializer(schemas, options) {
    let usual: ReturnType<BuildSerializer> | null = null;
    return (route) => {
      let serialize: Serialize | null = null;
      const compile = () => {
        usual ??= loadUsual()(schemas, options);
        return usual({ ...route, schema: withNullable(route.schema) });
      };
      return (data) => {
        serialize ??= keepIn(serializers, route.schema, compile);
        return serialize(data);
      };
    };
  },
};
