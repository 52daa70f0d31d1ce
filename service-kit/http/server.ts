import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import formbody from '@fastify/formbody';
import { type TypeBoxTypeProvider, TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox';
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import { CodedError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { PAGE_HEADERS } from '#service-kit/pages/send-page.ts';
import { isConnectionFailure } from '#service-kit/postgres/failures.ts';
import { type ErrorFields, errorBody, HttpError } from './errors.ts';
import { newRequestId } from './request-id.ts';
import { parseStrictJson } from './strict-json.ts';

export type App = FastifyInstance<Server, IncomingMessage, ServerResponse, never, TypeBoxTypeProvider>;

export interface HttpServerOptions {
  host: string;
  port: number;
  /** Name of the port's setting, for the message when it is taken. */
  portSetting: string;
  reporter: Reporter;
  /** Addresses and prefixes of reverse proxies: what one of them says of its client's address is believed. */
  trustedProxies?: readonly string[];
  /** Registers everything that is served. */
  routes: (app: App) => Promise<void> | void;
  /** Draws an error as a page where a person asked (`Accept: text/html`, and not an API path); null for JSON. */
  errorPage?: (request: FastifyRequest, status: number, fields: ErrorFields) => string | null;
}

export interface HttpServer extends Part {
  readonly app: App;
  /** `http://host:port`, valid after `start` (with the real port when 0 was asked for). */
  readonly url: string;
}

const bodyBytesMax = 256 * 1024;
const slowMs = 1_000;

export async function createHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const app = makeApp(options);
  await app.register(formbody, { bodyLimit: bodyBytesMax });
  await options.routes(app);
  let url = '';
  return {
    name: 'http',
    app,
    get url() {
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
    connectionTimeout: 65_000,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 200 },
    logger: false,
    // Of `X-Forwarded-For` the last address that is no proxy of ours counts: what stands before it, anybody can write.
    trustProxy: options.trustedProxies?.length ? [...options.trustedProxies] : false,
    // A request object survives its reply only in this mode; nothing of ours needs that.
    return503OnClosing: true,
  }).withTypeProvider<TypeBoxTypeProvider>() as unknown as App;
  app.setValidatorCompiler(TypeBoxValidatorCompiler);
  app.removeContentTypeParser('application/json');
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
    if (body === '') return done(null, undefined);
    try {
      done(null, parseStrictJson(body as string));
    } catch (error) {
      const message = (error as Error).message;
      done(new HttpError(400, { code: 'bad_request', reason: 'invalid_json', message }), undefined);
    }
  });
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
  app.addHook('onResponse', async (request, reply) => {
    if (reply.elapsedTime < slowMs) return;
    options.reporter.warn('slow request', describe(request, reply));
  });
  app.setNotFoundHandler((request, reply) =>
    answer(options, request, reply, 404, { code: 'not_found', message: 'There is nothing at this path.' }),
  );
  app.setErrorHandler((error: FastifyError | HttpError, request, reply) => {
    const { status, fields, headers } = translate(error);
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

function answer(
  options: HttpServerOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  fields: ErrorFields,
): FastifyReply {
  reply.code(status);
  const wantsPage = (request.headers.accept ?? '').includes('text/html');
  const page = wantsPage ? (options.errorPage?.(request, status, fields) ?? null) : null;
  if (page !== null) return reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(page);
  // Serialised here: a route's response schema must not be able to drop a member of the error.
  return reply
    .type('application/json; charset=utf-8')
    .serializer((body: unknown) => body as string)
    .send(JSON.stringify(errorBody(fields, request.id)));
}

interface Translated {
  status: number;
  fields: ErrorFields;
  headers: Readonly<Record<string, string>>;
}

/** What a thrown value means to the caller. Anything unknown is a 500 without a word about its inside. */
function translate(error: FastifyError | HttpError): Translated {
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
  if (isConnectionFailure(error)) {
    const message = 'The service can not reach its database right now. Try again in a moment.';
    return as(503, { code: 'unavailable', message, retryable: true }, { 'retry-after': '2' });
  }
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return as(413, {
        code: 'payload_too_large',
        message: `The body is larger than ${bodyBytesMax} bytes.`,
      });
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return as(415, {
        code: 'unsupported_media_type',
        message: 'Send the body as Content-Type: application/json.',
      });
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return as(400, { code: 'bad_request', message: 'Content-Length does not fit the body.' });
  }
  const status = error.statusCode ?? 500;
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
