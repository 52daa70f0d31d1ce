/** Every example that the reference shows is valid by the very schema that validates and serialises. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSchemaValidator } from '#contracts/customer-api/testing/check-answer.ts';
import { readDocument } from './document.ts';
import { exampleAnswer, exampleRequest, nameOffered, usuallyOffered } from './example.ts';
import { switches } from './guides.ts';
import { curlOf, typescriptOf } from './operation.page.ts';

const document = readDocument();
nameOffered(document, usuallyOffered);
const validate = createSchemaValidator();
const operations = document.resources.flatMap((resource) => resource.operations);

test('the examples of requests, answers and events are valid', () => {
  assert.ok(operations.length >= 7);
  for (const { id, body, responses } of operations) {
    if (body) validate(body.schema, exampleRequest(body.schema, document.schemas), `${id}: its example body`);
    for (const { status, schema } of responses) {
      if (schema === null) continue;
      validate(schema, exampleAnswer(schema, document.schemas), `${id}: its example ${status}`);
    }
  }
  for (const { type, schema } of document.webhooks)
    validate(schema, exampleAnswer(schema, document.schemas), `the example of ${type}`);
});

test('the guide for callers of other providers leads to calls that there are', () => {
  for (const { task, id } of switches)
    assert.ok(
      operations.some((operation) => operation.id === id),
      task,
    );
});

test('an example that does not fit is noticed', () => {
  const schema = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] };
  assert.throws(() => validate(schema, { id: 'x' }, 'planted'), /planted is not as documented/);
});

test('the snippets name the call with its variables filled in, and the body that it takes', () => {
  const byId = new Map(operations.map((operation) => [operation.id, operation]));
  const { schemas } = document;
  assert.equal(
    curlOf(byId.get('readServer')!, 'https://my.example.com', schemas),
    'curl "https://my.example.com/api/v2/servers/48211" \\\n  -H "Authorization: Bearer $KEY"',
  );
  assert.match(curlOf(byId.get('readPlan')!, '$URL', schemas), /\/api\/v2\/plans\/kvm-1"/);
  const create = curlOf(byId.get('createServer')!, '$URL', schemas);
  assert.match(create, /^curl -X POST "\$URL\/api\/v2\/servers"/);
  assert.doesNotThrow(() => JSON.parse(/-d '([^']+)'/s.exec(create)![1]!));
  assert.equal(
    typescriptOf(byId.get('actOnServer')!, schemas),
    "const serverAction = await api.actOnServer(48211, {\n  action: 'reboot'\n});",
  );
  assert.match(
    typescriptOf(byId.get('listServers')!, schemas),
    /^for await \(const server of api\.listServers\(\)\)/,
  );
});
