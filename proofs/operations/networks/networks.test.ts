import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prove } from './networks.prove.ts';

test('API-4.7, API-4.3: in every order of calls, a network with members stays, addresses are unique and accounts isolated', async () => {
  const said: string[] = [];
  const result = await prove({ n: 3, seed: 20_260_101, report: (line) => said.push(line) });
  assert.equal(result.failures, 0, said.join('\n'));
});
