/**
 * A caller of the customer API that believes nothing: every answer is compared with the published OpenAPI document, with
 * no member allowed that the document does not name.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Compile } from 'typebox/schema';

type Json = Record<string, unknown>;

export interface CallOptions {
  key?: string | null;
  body?: unknown;
  /** Sent as it is instead of `body`. */
  raw?: string;
  headers?: Record<string, string>;
}

export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed; null where there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely; their shape has been checked.
  body: any;
  text: string;
}

export type Call = (method: string, path: string, options?: CallOptions) => Promise<Answer>;

const document = JSON.parse(
  readFileSync(new URL('../../../../contracts/customer-api/openapi.json', import.meta.url), 'utf8'),
) as { paths: Record<string, Record<string, Json>>; components: { schemas: Record<string, Json> } };

const checks = new Map<string, (value: unknown) => void>();

/** Makes the caller of the server at `url`. */
export function createApiClient(url: string): Call {
  return async (method, path, options = {}) => {
    const headers: Record<string, string> = { ...options.headers };
    if (options.key) headers.authorization = `Bearer ${options.key}`;
    if (options.body !== undefined) headers['content-type'] ??= 'application/json';
    const sent = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
    const response = await fetch(`${url}${path}`, {
      method,
      headers,
      redirect: 'manual',
      ...(sent === undefined ? {} : { body: sent }),
    });
    const text = await response.text();
    const answer = {
      status: response.status,
      headers: response.headers,
      body: text ? JSON.parse(text) : null,
      text,
    };
    checkAnswer(method, path, answer);
    return answer;
  };
}

/** Fails when the document does not know this answer to this call. */
function checkAnswer(method: string, path: string, answer: Answer): void {
  assert.match(answer.headers.get('x-request-id') ?? '', /^req_[0-9A-HJKMNP-TV-Z]{26}$/);
  const operation = findOperation(method, path);
  if (operation === null) return;
  const responses = operation.responses as Record<string, Json>;
  const described = responses[answer.status];
  assert.ok(described, `${method} ${path}: the document knows no ${answer.status}: ${answer.text}`);
  const content = described.content as { 'application/json': { schema: Json } } | undefined;
  if (content === undefined || method === 'HEAD') {
    assert.equal(answer.body, null);
    return;
  }
  checkerOf(content['application/json'].schema)(answer.body);
  const reason = answer.body?.error?.reason ?? answer.body?.error?.code;
  if (answer.status >= 400)
    assert.ok(
      String(described.description).includes(`\`${reason}\``),
      `undocumented reason ${reason} of ${path}`,
    );
}

function findOperation(method: string, path: string): Json | null {
  const plain = path.split('?')[0]!.replace(/\/$/, '');
  const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
  for (const [template, methods] of Object.entries(document.paths)) {
    const pattern = new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`);
    if (pattern.test(plain)) return methods[verb] ?? null;
  }
  return null;
}

function checkerOf(schema: Json): (value: unknown) => void {
  const name = JSON.stringify(schema);
  const known = checks.get(name);
  if (known) return known;
  const compiled = Compile(resolve(schema) as object);
  const check = (value: unknown) => {
    if (compiled.Check(value)) return;
    assert.fail(`the answer is not as documented: ${JSON.stringify(compiled.Errors(value)).slice(0, 2_000)}`);
  };
  checks.set(name, check);
  return check;
}

/** The schema with its references in place and every object closed. */
function resolve(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(resolve);
  if (schema === null || typeof schema !== 'object') return schema;
  const reference = (schema as Json).$ref;
  if (typeof reference === 'string')
    return resolve(document.components.schemas[reference.split('/').at(-1)!]);
  const closed = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, resolve(value)]));
  const isOpen = closed.additionalProperties !== undefined || closed.patternProperties !== undefined;
  return closed.properties && !isOpen ? { ...closed, additionalProperties: false } : closed;
}
