import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { listOperations } from './testing/operations.ts';
import { comparable, createRawClient, type RawClient } from './testing/raw-client.ts';
import { createRejections } from './testing/rejections.ts';

let world: World;
let client: RawClient;
before(async () => {
  world = await createWorld({ authFailuresMax: 1_000_000, adminAuthFailuresMax: 1_000_000 });
  client = createRawClient(world.url);
});
after(async () => {
  client[Symbol.dispose]();
  await world[Symbol.asyncDispose]();
});

const pathOf = (path: string) => path.replaceAll(/\{\w+\}/g, '1');

test('API-5.2, API-7: 27 kinds of missing or bad credentials get one answer from every operation, byte for byte', async () => {
  const rejections = await createRejections(world);
  assert.equal(rejections.length, 27);
  let compared = 0;
  for (const operation of listOperations()) {
    const path = pathOf(operation.path);
    const answers = await Promise.all(
      rejections.map(async ({ headers, query, body }) => {
        const answer = await client.send({
          method: operation.method,
          path: query === undefined ? path : `${path}?${query}`,
          headers: [
            ...(headers ?? []),
            ...(body === undefined ? [] : [['content-type', 'application/json'] as const]),
          ],
          body,
        });
        return { said: comparable(answer, path), status: answer.status };
      }),
    );
    assert.equal(answers[0]!.status, 401, operation.id);
    assert.doesNotMatch(
      answers[0]!.said,
      /\nx-api-quota-|\nratelimit:|\nretry-after:|\netag:|\nx-tenant-id:/i,
    );
    for (const [index, { said }] of answers.entries())
      assert.equal(said, answers[0]!.said, `${operation.id}: ${rejections[index]!.name}`);
    compared += answers.length;
  }
  assert.ok(compared >= 27 * 15);
});

test('API-5.3, API-2.1.d: a read key is refused by exactly the unsafe operations, and no header or field turns one method into another', async () => {
  const customer = await world.createCustomer('Scoped');
  const key = await world.createKey(customer, 'read');
  const bearer = ['authorization', `Bearer ${key}`] as const;
  const json = ['content-type', 'application/json'] as const;
  for (const operation of listOperations()) {
    const path = pathOf(operation.path);
    const plain = await client.send({ method: operation.method, path, headers: [bearer] });
    assert.equal(plain.status === 403, !operation.isSafe, `${operation.id}: ${plain.status}`);
    for (const method of ['GET', 'POST', 'PATCH', 'DELETE', 'PUT']) {
      const disguised = await client.send({
        method: operation.method,
        path: `${path}?_method=${method}`,
        headers: [bearer, json, ['x-http-method-override', method], ['x-method-override', method]],
        body: operation.isSafe ? undefined : JSON.stringify({ _method: method }),
      });
      // A list may mind `_method` as an unknown filter; nothing else may come of it.
      const isMinded = operation.isSafe && disguised.status === 422;
      assert.ok(
        isMinded || disguised.status === plain.status,
        `${operation.id} as ${method}: ${disguised.status}`,
      );
    }
    if (operation.isSafe) {
      const head = await client.send({ method: 'HEAD', path, headers: [bearer] });
      assert.deepEqual([head.status, head.text], [plain.status, ''], `HEAD ${path}`);
    }
    const options = await client.send({ method: 'OPTIONS', path });
    assert.deepEqual([options.status, options.text], [204, ''], `OPTIONS ${path}`);
    const trace = await client.send({ method: 'TRACE', path, headers: [bearer] });
    assert.equal(trace.status, 405, `TRACE ${path}`);
    assert.ok(!trace.text.includes(key), 'nothing is echoed');
  }
});

test('API-4.6: a read key may GET a collection that it may not POST to', async () => {
  const key = await world.createKey(await world.createCustomer('Collection'), 'read');
  const operations = listOperations();
  const both = operations.filter(
    (one) => one.isSafe && operations.some((other) => other.path === one.path && other.method === 'POST'),
  );
  assert.ok(both.length > 0);
  for (const { path } of both.filter((one) => one.things.every((thing) => thing.in !== 'path'))) {
    const headers = [['authorization', `Bearer ${key}`]] as const;
    assert.equal((await client.send({ method: 'GET', path, headers })).status, 200, path);
    assert.equal((await client.send({ method: 'POST', path, headers })).status, 403, path);
  }
});
