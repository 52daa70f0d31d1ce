/**
 * Compares one answer of the customer API with its OpenAPI document: the status must be one that the operation documents,
 * every header one of that status, the body valid, and without a member that the document does not name.
 *
 * The document lets clients ignore new members, so its objects are open; here every object is closed, because an answer
 * with something undocumented in it is a leak or a forgotten line of documentation.
 */
import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import { buildOpenApi, readOpenApi } from '#contracts/customer-api/index.ts';

type Json = Record<string, unknown>;

/** What was asked and what came back. */
export interface ObservedAnswer {
  method: string;
  /** With or without its query. */
  path: string;
  status: number;
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>;
  /** The body as it was sent; empty where there is none. */
  text: string;
}

interface Response {
  description: string;
  headers?: Record<string, Json>;
  content?: Record<string, { schema: Json }>;
  'x-reasons'?: readonly string[];
}

interface Operation {
  operationId: string;
  responses: Record<string, Response>;
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Json>; headers: Record<string, Json> };
}

export interface AnswerChecker {
  /** Throws an `AssertionError` that says what the document does not know. */
  check(answer: ObservedAnswer): void;
  /** Operations (`GET /api/v2/servers`) with the statuses that were seen so far. */
  readonly seen: ReadonlyMap<string, ReadonlySet<number>>;
}

/** Headers of HTTP itself, and those that every answer of the API carries alike. */
const transportHeaders = new Set([
  'x-client-request-id',
  'date',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
  'content-type',
  'content-encoding',
  'vary',
  'cache-control',
  'x-content-type-options',
  'access-control-allow-origin',
  'access-control-expose-headers',
]);
const preflightHeaders = new Set([
  ...transportHeaders,
  'x-request-id',
  'allow',
  'access-control-allow-methods',
  'access-control-allow-headers',
  'access-control-max-age',
]);

/** What every checker shares: compiling the schemas of the document takes a second. */
let published: {
  document: Document;
  find: ReturnType<typeof createFinder>;
  validate: Validate;
} | null = null;

function readPublished() {
  if (published === null) {
    const document = readOpenApi<Document>(buildOpenApi());
    published = { document, find: createFinder(document), validate: createSchemaValidator(document) };
  }
  return published;
}

/** A checker of the published document. */
export function createAnswerChecker(): AnswerChecker {
  const { document, find, validate } = readPublished();
  const seen = new Map<string, Set<number>>();
  return {
    seen,
    check(answer) {
      const at = `${answer.method} ${answer.path} answered ${answer.status}`;
      assert.match(
        answer.headers['x-request-id'] ?? '',
        /^req_[0-9A-HJKMNP-TV-Z]{26}$/,
        `${at}: X-Request-Id`,
      );
      const found = find(answer.method, answer.path);
      if (found === null) return checkUnrouted(answer, validate, at);
      const { template, methods, operation } = found;
      if (answer.method === 'OPTIONS') return checkPreflight(answer, at);
      if (operation === null) return checkMethodRefusal(answer, methods, validate, at);
      const response = operation.responses[answer.status];
      assert.ok(response, `${at}, a status that ${operation.operationId} does not document: ${answer.text}`);
      const name = `${answer.method} ${template}`;
      seen.set(name, (seen.get(name) ?? new Set()).add(answer.status));
      checkHeaders(answer, response, document, validate, at);
      checkBody(answer, response, validate, at);
    },
  };
}

type Validate = (schema: Json, value: unknown, what: string) => void;

/** Throws an `AssertionError` about `what` when the value is not as a schema of the document wants it, to the letter. */
export function createSchemaValidator(document: Document = readPublished().document): Validate {
  const ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true });
  ajvFormats.default(ajv);
  ajv.addVocabulary(['x-resource']);
  const compiled = new Map<string, ValidateFunction>();
  return (schema, value, what) => {
    const key = JSON.stringify(schema);
    let check = compiled.get(key);
    if (check === undefined) {
      check = ajv.compile(close(schema, document));
      compiled.set(key, check);
    }
    if (check(value)) return;
    const faults = (check.errors ?? []).map(
      (fault) => `${fault.instancePath || '/'} ${fault.message} ${JSON.stringify(fault.params)}`,
    );
    assert.fail(`${what} is not as documented: ${faults.join('; ').slice(0, 2_000)}`);
  };
}

/** The schema with its references in place and every object closed. */
function close(schema: unknown, document: Document): Json {
  const walk = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(walk);
    if (node === null || typeof node !== 'object') return node;
    const reference = (node as Json).$ref;
    if (typeof reference === 'string') {
      const target = document.components.schemas[reference.slice('#/components/schemas/'.length)];
      assert.ok(target, `the document has no ${reference}`);
      return walk(target);
    }
    const copy = Object.fromEntries(Object.entries(node).map(([name, value]) => [name, walk(value)]));
    const isOpen = copy.additionalProperties !== undefined || copy.patternProperties !== undefined;
    return copy.type === 'object' && copy.properties && !isOpen
      ? { ...copy, additionalProperties: false }
      : copy;
  };
  return walk(schema) as Json;
}

interface Found {
  template: string;
  methods: string[];
  operation: Operation | null;
}

function createFinder(document: Document): (method: string, path: string) => Found | null {
  const routes = Object.entries(document.paths)
    .map(([template, operations]) => ({
      template,
      operations,
      pattern: new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`),
      variables: template.split('{').length,
    }))
    // `/servers/plans` before `/servers/{id}`, as the router does it.
    .sort((a, b) => a.variables - b.variables);
  return (method, path) => {
    const plain = path.split('?', 1)[0]!.replace(/\/$/, '');
    const route = routes.find((candidate) => candidate.pattern.test(plain));
    if (route === undefined) return null;
    const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
    return {
      template: route.template,
      methods: Object.keys(route.operations).map((name) => name.toUpperCase()),
      operation: route.operations[verb] ?? null,
    };
  };
}

const errorReference = { $ref: '#/components/schemas/Error' };

/** A path that no operation has: the one 404 there is. */
function checkUnrouted(answer: ObservedAnswer, validate: Validate, at: string): void {
  assert.equal(answer.status, 404, `${at}, and the document knows no such path`);
  assert.deepEqual(namesBeyond(answer, transportHeaders), ['x-request-id'], at);
  if (answer.method !== 'HEAD') validate(errorReference, parse(answer, at), `${at}: the body`);
}

function checkMethodRefusal(answer: ObservedAnswer, methods: string[], validate: Validate, at: string): void {
  assert.equal(answer.status, 405, `${at}, and the document knows no such method of this path`);
  assert.deepEqual(namesBeyond(answer, transportHeaders), ['allow', 'x-request-id'], at);
  for (const method of methods) assert.ok(answer.headers.allow!.split(', ').includes(method), at);
  validate(errorReference, parse(answer, at), `${at}: the body`);
}

function checkPreflight(answer: ObservedAnswer, at: string): void {
  assert.equal(answer.status, 204, at);
  assert.equal(answer.text, '', at);
  assert.deepEqual(namesBeyond(answer, preflightHeaders), [], at);
}

function checkHeaders(
  answer: ObservedAnswer,
  response: Response,
  document: Document,
  validate: Validate,
  at: string,
): void {
  const documented = new Map(
    Object.entries(response.headers ?? {}).map(([name, header]) => [
      name.toLowerCase(),
      typeof header.$ref === 'string'
        ? document.components.headers[header.$ref.slice('#/components/headers/'.length)]!
        : header,
    ]),
  );
  const strangers = namesBeyond(answer, transportHeaders).filter((name) => !documented.has(name));
  assert.deepEqual(strangers, [], `${at} with headers that this status does not document`);
  for (const [name, header] of documented) {
    const value = answer.headers[name];
    if (value === undefined) {
      assert.ok(header.required !== true, `${at} without its header ${name}`);
      continue;
    }
    const schema = header.schema as Json;
    const isNumber = schema.type === 'integer' && /^-?\d+$/.test(value);
    validate(schema, isNumber ? Number(value) : value, `${at}: its header ${name}`);
  }
}

function checkBody(answer: ObservedAnswer, response: Response, validate: Validate, at: string): void {
  if (answer.method === 'HEAD' || response.content === undefined) {
    assert.equal(answer.text, '', `${at} with a body that is not documented`);
    return;
  }
  const type = (answer.headers['content-type'] ?? '').split(';', 1)[0]!;
  const content = response.content[type];
  assert.ok(content, `${at} as ${type || 'nothing'}, documented is ${Object.keys(response.content)}`);
  if (!/[/+]json$/.test(type)) return;
  const body = parse(answer, at);
  validate(content.schema, body, `${at}: the body`);
  if (answer.status < 400) return;
  type Reasons = { reason?: string; code?: string };
  const { reason, code } = (body as { error?: Reasons }).error ?? (body as Reasons);
  assert.ok(
    response['x-reasons']?.includes((reason ?? code)!),
    `${at} with the reason ${reason ?? code}, which it does not document`,
  );
}

function namesBeyond(answer: ObservedAnswer, known: ReadonlySet<string>): string[] {
  return Object.keys(answer.headers)
    .filter((name) => !known.has(name))
    .sort();
}

function parse(answer: ObservedAnswer, at: string): unknown {
  assert.match(
    answer.headers['content-type'] ?? '',
    /^application\/(problem\+)?json(; charset=utf-8)?$/,
    `${at}: media type`,
  );
  return JSON.parse(answer.text);
}
