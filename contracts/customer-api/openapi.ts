/**
 * The OpenAPI 3.1 document of the customer API, made from the endpoint list and its schemas.
 *
 * Named schemas become components; everything is plain data, so the snapshot beside this file can be compared.
 */
import type { TSchema } from 'typebox';
import { commonErrors, conditionErrors, type Endpoint, PathId, pathIds } from './endpoint.ts';
import { endpoints } from './endpoints.ts';
import { type ErrorKind, kindsOf } from './errors.ts';
import { describeWebhooks } from './openapi-webhooks.ts';
import { resourceOf } from './resources.ts';
import { ErrorAnswer, ProblemAnswer, TenantSelector } from './schemas.ts';

type Json = Record<string, unknown>;

/** The whole document, with the same content in the same order every time. */
export function buildOpenApi(): Json {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  for (const endpoint of endpoints as readonly Endpoint[]) {
    for (const version of endpoint.versions) {
      const path = `/api/${version}${endpoint.path}`;
      paths[path] ??= {};
      paths[path][endpoint.method.toLowerCase()] = describeOperation(endpoint, version, schemas);
    }
  }
  refer(ErrorAnswer, schemas);
  const webhooks = describeWebhooks((schema) => refer(schema, schemas));
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
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => a.localeCompare(b))),
    },
  };
}

function listTags(): Json[] {
  const found = (endpoints as readonly Endpoint[]).map((endpoint) => resourceOf(endpoint.path));
  const named = new Map(found.map((resource) => [resource.title, resource.summary]));
  return [...named].map(([name, description]) => ({ name, description }));
}

/** One line for each endpoint: method, path, the scope that it needs, whose resources it touches. */
export function listEndpoints(): string {
  const lines = (endpoints as readonly Endpoint[]).flatMap((endpoint) =>
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
  'Preference-Applied': {
    description: 'The wait that was granted, in seconds.',
    schema: { type: 'string' },
  },
  Link: {
    description:
      'The next page, as `rel="next"`; in v1 also the same call in v2, as `rel="successor-version"`.',
    schema: { type: 'string' },
  },
};
/** Headers that a caller may send. */
const requestHeaders: Record<NonNullable<Endpoint['headers']>[number], Json> = {
  'Idempotency-Key': {
    description:
      'A unique key for this request, such as a UUID. A repetition within 24 hours is not executed again: it returns the first answer with `Idempotent-Replayed: true`.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
  'If-Match': {
    description:
      'One or more `ETag` values of the resource in the path, or `*`. The change is made only if the present version has one of them.',
    schema: { type: 'string' },
  },
  Prefer: {
    description: '`wait=N`: the answer is sent when the action has finished, or after N seconds, at most 30.',
    schema: { type: 'string' },
  },
};
/** Headers that every read takes (RFC 9110, section 13.1). */
const readHeaders: Record<string, Json> = {
  'If-Match': {
    description:
      'One or more `ETag` values of earlier answers, or `*`. If the present version has another one, the answer is `412`.',
    schema: { type: 'string' },
  },
  'If-None-Match': {
    description:
      'One or more `ETag` values of earlier answers. If the present version has one of them, the answer is `304`.',
    schema: { type: 'string' },
  },
};
/** Errors that a repetition under an `Idempotency-Key` may hear again. */
const replayable = ['402', '404', '409', '503'];
const quotaHeaders = ['X-Api-Quota-Limit', 'X-Api-Quota-Remaining', 'X-Api-Quota-Used'];
const rateHeaders = ['RateLimit', 'RateLimit-Policy'];

function describeOperation(endpoint: Endpoint, version: 'v1' | 'v2', schemas: Json): Json {
  const responses: Record<string, Json> = {};
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
                ([type, schema]) => [type, { schema: refer(schema, schemas) }],
              ),
            ),
          }
        : {}),
    };
  }
  if (endpoint.method === 'GET' && endpoint.responses[200]?.headers?.includes('ETag')) {
    const description = 'Unchanged since `If-None-Match`.';
    responses['304'] = { description, headers: referHeaders([...counted, 'ETag', 'Link']) };
  }
  const selection = version === 'v2' && endpoint.selectsTenant ? ['not_found', 'tenant_conflict'] : [];
  const conditions = endpoint.method === 'GET' ? conditionErrors : [];
  const names = new Set([...endpoint.errors, ...conditions, ...selection, ...commonErrors]);
  for (const [status, kinds] of groupByStatus(kindsOf([...names]))) {
    const described = describeError(status, kinds, version, schemas);
    const mayReplay = endpoint.headers?.includes('Idempotency-Key') && replayable.includes(status);
    responses[status] = mayReplay
      ? {
          ...described,
          headers: { ...(described.headers as Json), ...referHeaders(['Idempotent-Replayed']) },
        }
      : described;
  }
  return {
    operationId: `${version}${endpoint.id[0]!.toUpperCase()}${endpoint.id.slice(1)}`,
    tags: [resourceOf(endpoint.path).title],
    summary: endpoint.summary,
    description: endpoint.description,
    'x-required-scope': scopeOf(endpoint),
    ...(endpoint.isIdempotent ? { 'x-idempotent': true } : {}),
    parameters: describeParameters(endpoint, version),
    ...(endpoint.body
      ? {
          requestBody: {
            required: !endpoint.isBodyOptional,
            content: { 'application/json': { schema: refer(endpoint.body, schemas) } },
          },
        }
      : {}),
    responses,
  };
}

function describeParameters(endpoint: Endpoint, version: 'v1' | 'v2'): Json[] {
  const parameters: Json[] = Object.entries(endpoint.params).map(([name, resource]) => ({
    name,
    in: 'path',
    required: true,
    schema: pathIds[resource] ?? PathId,
    'x-resource': resource,
  }));
  const query = endpoint.query as
    | {
        properties?: Record<string, TSchema & { description?: string; 'x-resource'?: string }>;
        required?: readonly string[];
      }
    | undefined;
  for (const [name, schema] of Object.entries(query?.properties ?? {})) {
    const { description, 'x-resource': resource, ...plain } = schema;
    parameters.push({
      name,
      in: 'query',
      required: query?.required?.includes(name) === true,
      ...(description ? { description } : {}),
      schema: plain,
      ...(resource ? { 'x-resource': resource } : {}),
    });
  }
  for (const name of endpoint.headers ?? [])
    parameters.push({ name, in: 'header', required: false, ...requestHeaders[name] });
  if (endpoint.method === 'GET')
    for (const [name, described] of Object.entries(readHeaders))
      parameters.push({ name, in: 'header', required: false, ...described });
  if (version === 'v2' && endpoint.selectsTenant) {
    const {
      description,
      'x-resource': resource,
      ...plain
    } = TenantSelector as TSchema & {
      description?: string;
      'x-resource'?: string;
    };
    for (const [name, place] of [
      ['tenant', 'query'],
      ['X-Tenant-Id', 'header'],
    ]) {
      parameters.push({
        name,
        in: place,
        required: false,
        description,
        schema: plain,
        'x-resource': resource,
      });
    }
  }
  return parameters;
}

function groupByStatus(kinds: readonly ErrorKind[]): Map<string, ErrorKind[]> {
  const groups = new Map<string, ErrorKind[]>();
  for (const kind of kinds.toSorted((a, b) => a.status - b.status)) {
    groups.set(String(kind.status), [...(groups.get(String(kind.status)) ?? []), kind]);
  }
  return groups;
}

function describeError(
  status: string,
  kinds: readonly ErrorKind[],
  version: 'v1' | 'v2',
  schemas: Json,
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
  ];
  const reasons = kinds.map((one) => one.reason ?? one.code);
  return {
    description: kinds.map((one, index) => `\`${reasons[index]}\`: ${one.sentence}`).join(' '),
    'x-reasons': reasons,
    headers: referHeaders(named),
    content: {
      'application/json': { schema: refer(ErrorAnswer, schemas) },
      'application/problem+json': { schema: refer(ProblemAnswer, schemas) },
    },
  };
}

function referHeaders(names: readonly string[]): Json {
  const unique = [...new Set(names)];
  return Object.fromEntries(unique.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** A titled schema becomes a component and is referred to, wherever it stands; others are copied. */
function refer(schema: unknown, schemas: Json): unknown {
  if (Array.isArray(schema)) return schema.map((item) => refer(item, schemas));
  if (schema === null || typeof schema !== 'object') return schema;
  const title = (schema as { title?: unknown }).title;
  const walk = () =>
    Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, refer(value, schemas)]));
  if (typeof title !== 'string') return walk();
  if (!(title in schemas)) {
    schemas[title] = {};
    schemas[title] = walk();
  }
  return { $ref: `#/components/schemas/${title}` };
}
