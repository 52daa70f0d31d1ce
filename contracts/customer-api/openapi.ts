/**
 * The OpenAPI 3.1 document of the customer API, made from the endpoint list and its schemas.
 *
 * What several operations share stands once, among the components: titled schemas, parameters, and the errors of a status.
 * The error of an operation refers to that of its status, with the operation's own reasons as its description; `x-reasons`
 * lists them for programs. `readOpenApi` puts the shared parts in place.
 */
import type { TSchema } from 'typebox';
import { commonErrors, conditionErrors, type Endpoint, PathId, pathIds } from './endpoint.ts';
import { endpoints } from './endpoints.ts';
import { type ErrorKind, errorKinds, kindsOf } from './errors.ts';
import { createParts, type Json, type Parameter, type Parts, pascal } from './openapi-parts.ts';
import { resourceOf } from './resources.ts';
import { ErrorAnswer, ProblemAnswer, TenantSelector } from './schemas.ts';
import { eventBodySchema, testEvent, webhookEvents } from './webhook-events.ts';

/** The whole document, with the same content in the same order every time. */
export function buildOpenApi(): Json {
  const parts = createParts();
  const paths: Record<string, Json> = {};
  for (const endpoint of endpoints) {
    for (const version of endpoint.versions) {
      const path = `/api/${version}${endpoint.path}`;
      paths[path] ??= {};
      paths[path][endpoint.method.toLowerCase()] = describeOperation(endpoint, version, parts);
    }
  }
  const webhooks = describeWebhooks(parts);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Customer API',
      version: '2',
      description:
        'Deploy, read, start, stop and destroy virtual servers. Send your API key as `Authorization: Bearer svc_…`. Version 1 always uses the first workspace of the key; in version 2 the parameter `tenant` selects it.',
      license: { name: 'Proprietary' },
    },
    servers: [{ url: '/' }],
    security: [{ key: [] }],
    tags: listTags(),
    paths,
    webhooks,
    components: {
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'svc_<key_id>_<secret>',
          description: 'An API key. Read keys may use safe methods only.',
        },
      },
      headers,
      ...parts.components(),
    },
  };
}

function listTags(): Json[] {
  const found = endpoints.map((endpoint) => resourceOf(endpoint.path));
  const unique = [...new Map(found.map((resource) => [resource.title, resource])).values()];
  return unique.map(({ title, name, summary }) => ({ name: title, description: summary, 'x-word': name }));
}

/** One line for each endpoint: method, path, the scope that it needs, whose resources it touches. */
export function listEndpoints(): string {
  const lines = endpoints.flatMap((endpoint) =>
    endpoint.versions.map((version) => {
      const selector = version === 'v2' && endpoint.selectsTenant ? ['tenant'] : [];
      const resources = [...Object.values(endpoint.params), ...selector].join(',') || '-';
      const path = `/api/${version}${endpoint.path}`;
      return [
        endpoint.method.padEnd(7),
        path.padEnd(34),
        `key:${scopeOf(endpoint)}`.padEnd(9),
        resources,
      ].join(' ');
    }),
  );
  return `${lines.sort().join('\n')}\n`;
}

/** Safe methods need a read key, all others a full one (API-5.3). */
export function scopeOf(endpoint: Pick<Endpoint, 'method'>): 'read' | 'full' {
  return endpoint.method === 'GET' ? 'read' : 'full';
}

const headers: Record<string, Json> = {
  'X-Request-Id': {
    description: 'Include it in support requests about a call.',
    required: true,
    schema: { type: 'string' },
  },
  'X-Client-Request-Id': {
    description: 'The value of the same request header, if it has 1 to 128 visible ASCII characters.',
    schema: { type: 'string' },
  },
  'X-Tenant-Id': { description: 'The workspace of the call.', schema: { type: 'integer' } },
  'X-Api-Quota-Limit': { description: 'Free requests of the month.', schema: { type: 'integer' } },
  'X-Api-Quota-Remaining': { description: 'Free requests left, never below 0.', schema: { type: 'integer' } },
  'X-Api-Quota-Used': {
    description: 'Requests of the month, including this one.',
    schema: { type: 'integer' },
  },
  RateLimit: { description: 'Remaining requests of each rate limit.', schema: { type: 'string' } },
  'RateLimit-Policy': { description: 'The rate limits.', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } },
  'WWW-Authenticate': { description: 'The scheme to use.', required: true, schema: { type: 'string' } },
  Location: { description: 'URL of the new resource.', required: true, schema: { type: 'string' } },
  ETag: {
    description:
      'Send it as `If-None-Match` to read only a changed version, as `If-Match` to change only this version.',
    required: true,
    schema: { type: 'string' },
  },
  'Idempotent-Replayed': {
    description: '`true` when an earlier call with the same `Idempotency-Key` was executed.',
    schema: { type: 'string' },
  },
  'Preference-Applied': { description: 'The wait that was granted, in seconds.', schema: { type: 'string' } },
  Link: {
    description:
      'The next page, as `rel="next"`; in v1 also the same call in v2, as `rel="successor-version"`.',
    schema: { type: 'string' },
  },
};
/** Headers that a caller may send. */
const requestHeaders: Record<string, Json> = {
  'Idempotency-Key': {
    description:
      'A unique key for this request, such as a UUID. A repetition within 24 hours is not executed again: it returns the first answer with `Idempotent-Replayed: true`.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
  'If-Match': {
    description:
      'One or more `ETag` values of the resource in the path, or `*`. If the present version has another one, the answer is `412`, and nothing is changed.',
    schema: { type: 'string' },
  },
  'If-None-Match': {
    description:
      'One or more `ETag` values of earlier answers. If the present version has one of them, the answer is `304`.',
    schema: { type: 'string' },
  },
  Prefer: {
    description: '`wait=N`: the answer is sent when the action has finished, or after N seconds, at most 30.',
    schema: { type: 'string' },
  },
};
/** Headers that every read takes (RFC 9110, section 13.1). */
const readHeaders = ['If-Match', 'If-None-Match'];
/** Errors that a repetition under an `Idempotency-Key` may hear again. */
const replayable = ['402', '404', '409', '503'];
const quotaHeaders = ['X-Api-Quota-Limit', 'X-Api-Quota-Remaining', 'X-Api-Quota-Used'];
const rateHeaders = ['RateLimit', 'RateLimit-Policy'];

function describeOperation(endpoint: Endpoint, version: 'v1' | 'v2', parts: Parts): Json {
  const body = version === 'v1' ? (endpoint.bodyV1 ?? endpoint.body) : endpoint.body;
  const responses: Record<string, unknown> = {};
  const always = ['X-Request-Id', 'X-Client-Request-Id', version === 'v1' ? 'Link' : 'X-Tenant-Id'];
  const counted = [...always, ...quotaHeaders, ...rateHeaders];
  for (const [status, response] of Object.entries(endpoint.responses)) {
    responses[status] = {
      description: response.description,
      headers: referHeaders([...counted, ...(response.headers ?? [])]),
      ...(response.schema
        ? {
            content: Object.fromEntries(
              Object.entries({ 'application/json': response.schema, ...response.alsoAs }).map(
                ([type, schema]) => [type, { schema: parts.schema(schema) }],
              ),
            ),
          }
        : {}),
    };
  }
  if (endpoint.method === 'GET' && endpoint.responses[200]?.headers?.includes('ETag')) {
    responses['304'] = parts.share('responses', version === 'v1' ? 'NotModifiedV1' : 'NotModified', {
      description: 'Unchanged since `If-None-Match`.',
      headers: referHeaders([...counted, 'ETag', 'Link']),
    });
  }
  const selection = version === 'v2' && endpoint.selectsTenant ? ['not_found', 'tenant_conflict'] : [];
  const conditions = endpoint.method === 'GET' ? conditionErrors : [];
  const names = new Set([...endpoint.errors, ...conditions, ...selection, ...commonErrors]);
  const groups = groupByStatus(kindsOf([...names]));
  for (const [status, kinds] of groups)
    responses[status] = describeError(status, kinds, {
      version,
      mayReplay: endpoint.headers?.includes('Idempotency-Key') === true && replayable.includes(status),
      parts,
    });
  return {
    operationId: `${version}${endpoint.id[0]!.toUpperCase()}${endpoint.id.slice(1)}`,
    tags: [resourceOf(endpoint.path).title],
    summary: endpoint.summary,
    description: endpoint.description,
    'x-required-scope': scopeOf(endpoint),
    ...(endpoint.isIdempotent ? { 'x-idempotent': true } : {}),
    ...(endpoint.destroys ? { 'x-destroys': true } : {}),
    'x-reasons': Object.fromEntries([...groups].map(([status, kinds]) => [status, kinds.map(nameOf)])),
    parameters: describeParameters(endpoint, version, parts),
    ...(body
      ? {
          requestBody: {
            required: !endpoint.isBodyOptional,
            content: { 'application/json': { schema: parts.schema(body) } },
          },
        }
      : {}),
    responses,
  };
}

function describeParameters(endpoint: Endpoint, version: 'v1' | 'v2', parts: Parts): unknown[] {
  const query = endpoint.query as
    | { properties?: Record<string, DescribedSchema>; required?: readonly string[] }
    | undefined;
  const selection = version === 'v2' && endpoint.selectsTenant ? (TenantSelector as DescribedSchema) : null;
  const inHeaders = new Set([...(endpoint.headers ?? []), ...(endpoint.method === 'GET' ? readHeaders : [])]);
  const parameters: Parameter[] = [
    ...Object.entries(endpoint.params).map(([name, resource]) => ({
      name,
      in: 'path' as const,
      required: true,
      schema: pathIds[resource] ?? PathId,
      'x-resource': resource,
    })),
    ...Object.entries(query?.properties ?? {}).map(([name, schema]) =>
      parameterOf(name, 'query', schema, query?.required?.includes(name) === true),
    ),
    ...[...inHeaders].map((name) => ({
      name,
      in: 'header' as const,
      required: false,
      ...requestHeaders[name],
    })),
    ...(selection
      ? [parameterOf('tenant', 'query', selection), parameterOf('X-Tenant-Id', 'header', selection)]
      : []),
  ];
  return parameters.map((one) => parts.shareParameter(one));
}

type DescribedSchema = TSchema & { description?: string; 'x-resource'?: string };

function parameterOf(
  name: string,
  place: Parameter['in'],
  given: DescribedSchema,
  required = false,
): Parameter {
  const { description, 'x-resource': resource, ...schema } = given;
  return {
    name,
    in: place,
    required,
    ...(description ? { description } : {}),
    schema,
    ...(resource ? { 'x-resource': resource } : {}),
  };
}

function groupByStatus(kinds: readonly ErrorKind[]): Map<string, ErrorKind[]> {
  const groups = new Map<string, ErrorKind[]>();
  for (const kind of kinds.toSorted((a, b) => a.status - b.status)) {
    groups.set(String(kind.status), [...(groups.get(String(kind.status)) ?? []), kind]);
  }
  return groups;
}

interface ErrorPlace {
  version: 'v1' | 'v2';
  /** A repetition under an `Idempotency-Key` may get it again. */
  mayReplay: boolean;
  parts: Parts;
}

/** The error of a status as an operation refers to it, with the reasons that the operation has. */
function describeError(
  status: string,
  kinds: readonly ErrorKind[],
  { version, mayReplay, parts }: ErrorPlace,
): Json {
  const isRetried = ['409', '429', '503'].includes(status);
  // What the account gate and the scope refuse is not counted; what the endpoint refuses is.
  const isCounted =
    status !== '401' && (status !== '403' || kinds.some(({ reason }) => reason === 'owner_only'));
  const named = [
    'X-Request-Id',
    'X-Client-Request-Id',
    ...(version === 'v1' ? ['Link'] : []),
    // A refused key gets no information about a budget, month or workspace; refused calls are not counted.
    ...(status === '401' ? ['WWW-Authenticate'] : rateHeaders),
    ...(isCounted ? quotaHeaders : []),
    ...(version === 'v2' && isCounted ? ['X-Tenant-Id'] : []),
    ...(isRetried ? ['Retry-After'] : []),
    ...(mayReplay ? ['Idempotent-Replayed'] : []),
  ];
  const title = pascal(kinds[0]!.code);
  const name = `${title}${status === '403' && isCounted ? 'Counted' : ''}${mayReplay ? 'Replayable' : ''}${version === 'v1' ? 'V1' : ''}`;
  const all = errorKinds.filter((one) => String(one.status) === status);
  const reference = parts.share('responses', name, {
    description: all.map((one) => `\`${nameOf(one)}\`: ${one.sentence}`).join(' '),
    headers: referHeaders(named),
    content: {
      'application/json': { schema: parts.schema(ErrorAnswer) },
      'application/problem+json': { schema: parts.schema(ProblemAnswer) },
    },
  });
  return kinds.length === all.length
    ? reference
    : { ...reference, description: kinds.map((one) => `\`${nameOf(one)}\``).join(', ') };
}

const nameOf = ({ reason, code }: ErrorKind) => reason ?? code;

function referHeaders(names: readonly string[]): Json {
  const unique = [...new Set(names)];
  return Object.fromEntries(unique.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const parameter = (name: string, description: string, schema: Json): Parameter => ({
  name,
  in: 'header',
  required: true,
  description,
  schema,
});

const webhookParameters = [
  parameter('webhook-id', 'Id of the event; the same in every delivery attempt.', {
    type: 'string',
    pattern: '^msg_[0-9a-f]{32}$',
  }),
  parameter('webhook-timestamp', 'Time of the signature of this attempt, in seconds since 1970.', {
    type: 'string',
    pattern: '^\\d+$',
  }),
  parameter(
    'webhook-signature',
    'One or more signatures with spaces between them, each `v1,` and the base64 of an HMAC-SHA256 of `id.timestamp.body`.',
    { type: 'string', pattern: '^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$' },
  ),
];

const webhookAnswers: Record<string, [name: string, description: string]> = {
  '2XX': ['WebhookAccepted', 'Accepted. Any other answer, or none within 15 seconds, is retried.'],
  '410': ['WebhookGone', 'Gone: the endpoint is disabled.'],
};

/** One entry for each event. */
function describeWebhooks(parts: Parts): Json {
  return Object.fromEntries(
    [...webhookEvents, testEvent].map((kind) => [
      kind.type,
      {
        post: {
          operationId: `receive${pascal(kind.type)}`,
          summary: kind.summary,
          security: [],
          parameters: webhookParameters.map((one) => parts.shareParameter(one)),
          requestBody: {
            required: true,
            content: { 'application/json': { schema: parts.schema(eventBodySchema(kind)) } },
          },
          responses: Object.fromEntries(
            Object.entries(webhookAnswers).map(([status, [name, description]]) => [
              status,
              parts.share('responses', name, { description }),
            ]),
          ),
        },
      },
    ]),
  );
}
