import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { buildOpenApi, endpoints, listEndpoints } from './index.ts';

function matchesSnapshot(name: string, text: string): void {
  const file = new URL(name, import.meta.url);
  if (process.env.SVC_UPDATE_SNAPSHOTS === '1') writeFileSync(file, text);
  assert.equal(
    text,
    readFileSync(file, 'utf8'),
    `${name} differs; if the change is meant, run this test with SVC_UPDATE_SNAPSHOTS=1`,
  );
}

test('the published OpenAPI document is the one that the endpoints make', () => {
  matchesSnapshot('openapi.json', `${JSON.stringify(buildOpenApi(), null, 2)}\n`);
});

test('the published list of endpoints is complete', () => {
  matchesSnapshot('endpoints.txt', listEndpoints());
});

test('every path parameter says whose resource it names', () => {
  for (const endpoint of endpoints) {
    const named = [...endpoint.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    assert.deepEqual(Object.keys(endpoint.params), named, endpoint.id);
  }
});

test('API-9: version 2 has every call of version 1', () => {
  for (const endpoint of endpoints)
    assert.ok((endpoint.versions as readonly string[]).includes('v2'), endpoint.id);
});
