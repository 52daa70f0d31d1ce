/**
 * The HTTP server of both server programs: Fastify with our request ids, errors as coded JSON, and a clean stop.
 *
 * Surfaces register routes on it; what they throw becomes an answer here, so no surface formats errors by itself.
 * Successful calls are not logged (a line costs more than the call); failures and slow calls are.
 */

export { type HostRules, healthPaths } from './accepted-host.ts';
export { compressAnswer } from './compress.ts';
export { type ErrorFields, HttpError } from './errors.ts';
export { onClosed, waitingAnswers } from './on-closed.ts';
export { originOf, type RequestOrigin } from './origin.ts';
export { preferredType } from './preferred-type.ts';
export { newRequestId } from './request-id.ts';
export { type App, createHttpServer, type HttpServer, type HttpServerOptions } from './server.ts';
export { isLoopback, sourceBucket } from './source.ts';
export { parseJsonBody, parseStrictJson } from './strict-json.ts';
export { findUnkeepableTexts, unkeepableText } from './unkeepable.ts';
