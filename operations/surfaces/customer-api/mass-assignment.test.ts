// Slow: sends each member of each answer back to each route.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildOpenApi } from '#contracts/customer-api/index.ts';
import { createIsolationWorld, requestOf } from './testing/isolation-world.ts';
import { listOperations } from './testing/operations.ts';
import { changedTables, sumRows } from './testing/row-sums.ts';

type Json = Record<string, unknown>;

/** Every name that any object of the document has, with a value of its type. */
function fieldsOfDocument(): Map<string, unknown> {
  const { components } = buildOpenApi() as { components: { schemas: Record<string, Json> } };
  const found = new Map<string, unknown>();
  const walk = (schema: unknown) => {
    if (schema === null || typeof schema !== 'object') return;
    for (const [name, inner] of Object.entries((schema as Json).properties ?? {})) {
      const type = (inner as Json).type;
      found.set(
        name,
        type === 'integer' ? 1 : type === 'boolean' ? true : type === 'array' ? [] : 'assigned',
      );
    }
    for (const inner of Object.values(schema)) walk(inner);
  };
  walk(components.schemas);
  return found;
}

test('API-4.9: no field of any answer can be assigned by sending it back; each is refused by its name', async () => {
  await using at = await createIsolationWorld();
  const fields = [...fieldsOfDocument(), ['root_password', 'assigned'], ['is_admin', true]] as const;
  assert.ok(fields.length > 60);
  const token = await at.createKey();
  const operations = listOperations().filter((one) => one.version === 'v2' && one.hasBody);
  for (const [turn, operation] of operations.entries()) {
    const own = operation.things.map(() => 'own' as const);
    const plain = requestOf(operation, token, at.idsOf(operation, own));
    const body = JSON.parse(plain.body!) as Json;
    const before = await sumRows(at.world);
    // A ninth of the fields for each; over the operations every field comes up several times.
    const tried = fields.filter(
      ([one], index) => index % 9 === turn % 9 && !operation.bodyFields.includes(one),
    );
    for (const [name, value] of tried) {
      const answer = await at.client.send({ ...plain, body: JSON.stringify({ ...body, [name]: value }) });
      const error = (JSON.parse(answer.text) as { error: { fields?: { path: string }[] } }).error;
      assert.equal(answer.status, 422, `${operation.id} with ${name}: ${answer.text}`);
      assert.ok(
        error.fields?.some((fault) => fault.path === name),
        `${operation.id} with ${name}: ${answer.text}`,
      );
    }
    assert.deepEqual(changedTables(before, await sumRows(at.world)), [], operation.id);
  }
});
