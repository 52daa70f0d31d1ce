import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { endpoints } from '#contracts/customer-api/index.ts';
import { generateClient } from './generate-client.ts';

test('the generated client is the one that the OpenAPI document makes', () => {
  const file = new URL('../clients/typescript/generated/api.ts', import.meta.url);
  assert.equal(
    readFileSync(file, 'utf8'),
    generateClient(),
    'run sh tools/with-node tools/generate-client.ts',
  );
});

test('it has a method for each call', () => {
  const text = generateClient();
  for (const endpoint of endpoints) assert.match(text, new RegExp(`^  ${endpoint.id}\\(`, 'm'));
});
