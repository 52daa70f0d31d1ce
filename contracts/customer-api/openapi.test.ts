import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { buildOpenApi, endpoints, listEndpoints, readOpenApi } from './index.ts';

test('the published document is valid OpenAPI 3.1, and says what operations share once', async () => {
  const document = buildOpenApi();
  const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(document)));
  assert.ok(valid, JSON.stringify(errors));
  assert.ok(
    JSON.stringify(document).length < 7_000 * endpoints.length,
    'errors, headers and parameters are components',
  );
});

test('the published list of endpoints is complete', () => {
  const file = new URL('endpoints.txt', import.meta.url);
  const text = listEndpoints();
  if (process.env.SVC_UPDATE_SNAPSHOTS === '1') writeFileSync(file, text);
  assert.equal(
    text,
    readFileSync(file, 'utf8'),
    'endpoints.txt differs; if the change is meant, run this test with SVC_UPDATE_SNAPSHOTS=1',
  );
});

test('every path parameter says whose resource it names', () => {
  for (const endpoint of endpoints) {
    const named = [...endpoint.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    assert.deepEqual(Object.keys(endpoint.params), named, endpoint.id);
  }
});

test('every query and body field that names a thing says what kind of thing, so that the isolation matrix tries it', () => {
  const unmarked: string[] = [];
  const walk = (schema: unknown, name: string, at: string) => {
    if (schema === null || typeof schema !== 'object') return;
    const { properties, items, anyOf, ...own } = schema as Record<string, unknown>;
    const names = /(^|_)ids?$|^tenant$/.test(name) || (anyOf as unknown[] | undefined)?.some(isId);
    if (names && own['x-resource'] === undefined) unmarked.push(at);
    for (const [key, inner] of Object.entries((properties ?? {}) as object)) walk(inner, key, `${at}.${key}`);
    walk(items, own['x-resource'] ? '' : name, `${at}[]`);
  };
  const isId = (schema: unknown) =>
    (schema as Record<string, unknown>).type === 'integer' && (schema as { minimum?: number }).minimum === 1;
  for (const endpoint of endpoints) {
    walk(endpoint.query, '', `${endpoint.id} query`);
    walk(endpoint.body, '', `${endpoint.id} body`);
  }
  assert.deepEqual(unmarked, [], 'mark the schema with x-resource and its ResourceKind');
  const naming = endpoints.filter(
    (endpoint) => Object.keys(endpoint.params).length === 0 && !endpoint.selectsTenant,
  );
  assert.deepEqual(
    naming.map((endpoint) => endpoint.id),
    ['listTenants', 'readKey'],
    'an operation that names nothing, not even a workspace, is looked at by a person before it is listed here',
  );
});

test('the document is sound: references lead somewhere, ids are unique, paths name their parameters, patterns are ECMA-262', () => {
  type Operation = { operationId: string; parameters: { name: string; in: string }[] };
  const document = buildOpenApi();
  const followed: unknown[] = [];
  JSON.stringify(document, (name, value) => {
    if (name === 'pattern' && typeof value === 'string') new RegExp(value, 'u');
    if (name !== '$ref') return value;
    const steps = String(value).slice(2).split('/');
    followed.push(steps.reduce<unknown>((at, step) => (at as Record<string, unknown>)?.[step], document));
    return value;
  });
  assert.ok(followed.length > 1_000 && followed.every((target) => target !== undefined));
  const { paths } = readOpenApi<{ paths: Record<string, Record<string, Operation>> }>(document);
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.values(methods).map((operation) => ({ path, ...operation })),
  );
  assert.equal(new Set(operations.map((one) => one.operationId)).size, operations.length);
  const names = new Set(operations.map((one) => one.operationId.replace(/^v[12]/, '').toLowerCase()));
  for (const { id } of endpoints) assert.ok(names.has(id.toLowerCase()), id);
  for (const { path, parameters, operationId } of operations) {
    const named = parameters.map((one) => `${one.in}:${one.name}`);
    assert.equal(new Set(named).size, named.length, operationId);
    const inPath = named.filter((one) => one.startsWith('path:')).map((one) => `{${one.slice(5)}}`);
    assert.deepEqual(inPath.sort(), (path.match(/\{\w+\}/g) ?? []).sort(), operationId);
  }
});

test('API-9: version 2 has every call of version 1', () => {
  for (const endpoint of endpoints)
    assert.ok((endpoint.versions as readonly string[]).includes('v2'), endpoint.id);
});

test('every call and every webhook has a name of its own, and the document a licence', () => {
  const { info, paths, webhooks } = buildOpenApi() as {
    info: { license?: { name: string } };
    paths: Record<string, Record<string, { operationId?: string }>>;
    webhooks: Record<string, Record<string, { operationId?: string }>>;
  };
  const names = [paths, webhooks].flatMap((group) =>
    Object.values(group).flatMap((methods) => Object.values(methods).map((one) => one.operationId)),
  );
  for (const name of names) assert.match(name ?? 'none', /^[a-z][A-Za-z0-9]{4,}$/);
  assert.equal(new Set(names).size, names.length);
  assert.ok(info.license?.name);
});
